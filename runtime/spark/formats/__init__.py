"""The formats of files and messages: bytes and texts in, columns of declared types out, and what is wrong with them."""
