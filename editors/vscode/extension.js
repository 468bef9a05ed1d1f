// Starts `vsc lsp` for topologies. Everything else that the extension does is data: see package.json.
"use strict";

const { window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate() {
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const written = workspace.getConfiguration("vsc").get("command");
  const [command, ...args] = written.map((part) => part.replaceAll("${workspaceFolder}", folder));
  client = new LanguageClient("vsc", "vsc", { command, args }, { documentSelector: [{ language: "vdsl" }] });
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `vsc cannot serve the editor: ${error.message}. Install it with pip install 'versioned-streams[lsp]', ` +
        "or set vsc.command to where it is."
    );
  }
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
