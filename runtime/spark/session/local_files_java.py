"""The Java of `local_files`: Hadoop's own file system for local files, but for the calls that it overrides.

`Listed` is what a source of files finds below a folder: every file once, in the order of the paths. `Names` are file
names that this JVM cannot read.
"""

__all__ = ["CLASS", "SOURCE", "UNREADABLE_NAME"]

CLASS = "vsc.LocalFiles"
UNREADABLE_NAME = "a name of a file is not "
"""What begins the message about a name that the JVM cannot read; its encoding and the file follow."""

SOURCE = r"""
package vsc;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.GlobFilter;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

public class LocalFiles extends LocalFileSystem {
    private static final InheritableThreadLocal listsSource = new InheritableThreadLocal();
    private static final Pattern WITHOUT_CHECKSUM = Pattern.compile(
        ".*/state/[0-9]+/[0-9]+/(.+/)?[.]?[0-9]+_[^/]+[.](changelog|zip)([.]crc)?([.][^/]+[.]tmp)?"
        + "|.*/_vsc-[^/]+/[0-9]+-[0-9a-f]{32}/.+");

    public LocalFiles() {
        super(new Raw());
    }

    public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int buffer,
            short replication, long block, Progressable progress) throws IOException {
        if (WITHOUT_CHECKSUM.matcher(path.toUri().getPath()).matches()) {
            return getRawFileSystem().create(path, permission, overwrite, buffer, replication, block, progress);
        }
        return super.create(path, permission, overwrite, buffer, replication, block, progress);
    }

    public Path getChecksumFile(Path file) {  // Hadoop takes what is before a colon for the scheme of a URL
        return new Path(file.getParent(), new Path(null, null, "." + file.getName() + ".crc"));
    }

    public FileStatus[] listStatus(Path path) throws IOException {
        if (pathToFile(path).isDirectory() && isSource("org.apache.spark.util.HadoopFSUtils")) {
            return new Listed(this).below(path);
        }
        return super.listStatus(path);
    }

    public FileStatus[] globStatus(Path pattern) throws IOException {
        FileStatus[] found = super.globStatus(pattern);
        return found == null || !isSource("") ? found : new Listed(this).roots(pattern, found);
    }

    private static boolean isSource(String lister) {
        boolean source = false, lists = lister.isEmpty();
        for (StackTraceElement frame : new Throwable().getStackTrace()) {
            String name = frame.getClassName();
            lists = lists || name.startsWith(lister);
            source = source || name.endsWith(".FileStreamSource") || name.endsWith(".Executor$TaskRunner");
        }
        return lists && (source || listsSource.get() != null);
    }

    public void listSource(boolean now) {  // what this thread lists, as a stream does
        listsSource.set(now ? Boolean.TRUE : null);
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {  // which Java has no name for
                super.setPermission(path, permission);
                return;
            }
            String all = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(all));
        }
    }
}

class Listed {
    private final LocalFiles files;
    private final TreeMap found = new TreeMap(new ByCodePoint());  // statuses by path
    private final TreeMap links = new TreeMap(new ByCodePoint());  // those not looked into yet: their paths
    private final Set real = new HashSet();  // the real paths of files and folders that have been found

    Listed(LocalFiles files) {
        this.files = files;
    }

    FileStatus[] below(Path folder) throws IOException {
        walk(folder, real(file(folder)));
        while (!links.isEmpty()) {
            Path link = (Path) links.pollFirstEntry().getValue();
            FileStatus status = status(link);
            String target = status == null ? null : real(file(link));
            if (target != null && status.isDirectory()) {
                walk(link, target);
            } else if (target != null && real.add(target)) {
                found.put(path(link), status);
            }
        }
        return (FileStatus[]) found.values().toArray(new FileStatus[0]);
    }

    FileStatus[] roots(Path pattern, FileStatus[] matches) throws IOException {
        Names.check(pattern, files);
        for (FileStatus match : matches) {
            if (!isLink(file(match.getPath()))) {
                real.add(real(file(match.getPath())));
            }
        }
        for (FileStatus match : matches) {
            File place = file(match.getPath());
            if (!isLink(place) || isNew(real(place))) {
                found.put(path(match.getPath()) + (match.isDirectory() ? "/" : ""), match);
            }
        }
        return (FileStatus[]) found.values().toArray(new FileStatus[0]);
    }

    private boolean isNew(String target) {  // neither found, nor around or below what is
        for (Object one : real) {
            if ((one + "/").startsWith(target + "/") || (target + "/").startsWith(one + "/")) {
                return false;
            }
        }
        return real.add(target);
    }

    private void walk(Path folder, String at) throws IOException {
        if (!real.add(at)) {
            return;
        }
        for (String name : Names.in(file(folder))) {
            Path path = new Path(folder, new Path(null, null, name));
            File place = file(path);
            if (Names.isHidden(name)) {
                continue;
            }
            Names.check(place);
            if (isLink(place)) {
                links.put(path(path), path);
                continue;
            }
            FileStatus status = status(path);
            if (status != null && status.isDirectory()) {
                walk(path, at + "/" + name);
            } else if (status != null && real.add(at + "/" + name)) {
                found.put(path(path), status);
            }
        }
    }

    private FileStatus status(Path path) throws IOException {
        try {
            return files.getFileStatus(path);
        } catch (FileNotFoundException error) {
            return null;  // it is gone by now
        }
    }

    private File file(Path path) {
        return files.pathToFile(path);
    }

    private static boolean isLink(File file) {
        return Files.isSymbolicLink(file.toPath());
    }

    private static String real(File file) throws IOException {
        return file.toPath().toRealPath().toString();
    }

    private static String path(Path path) {
        return path.toUri().getPath();
    }
}

class Names {
    private Names() {
    }

    static String[] in(File folder) throws IOException {
        String[] names = folder.list();
        if (names == null && folder.isDirectory()) {
            return FileUtil.list(folder);  // which says that it cannot be read
        }
        return names == null ? new String[0] : names;
    }

    static boolean isHidden(String name) {  // as Spark has it
        return name.startsWith(".") || name.startsWith("_") && name.indexOf('=') < 0;
    }

    static void check(File file) throws IOException {
        if (file.getName().indexOf('\uFFFD') >= 0 && !isThere(file)) {
            throw new IOException("UNREADABLE_NAME"
                + System.getProperty("sun.jnu.encoding") + ": [" + file.getPath() + "]");
        }
    }

    static void check(Path pattern, LocalFiles files) throws IOException {
        Path folder = pattern.getParent();
        if (folder == null) {
            return;
        }
        GlobFilter filter = new GlobFilter(pattern.getName());
        if (!filter.hasPattern()) {
            check(folder, files);
            return;
        }
        FileStatus[] around = files.globStatus(folder);
        for (FileStatus one : around == null ? new FileStatus[0] : around) {
            for (String name : in(files.pathToFile(one.getPath()))) {
                if (name.indexOf('\uFFFD') >= 0 && !isHidden(name) && filter.accept(new Path(null, null, name))) {
                    check(new File(files.pathToFile(one.getPath()), name));
                }
            }
        }
    }

    private static boolean isThere(File file) {
        try {
            return Files.exists(file.toPath(), new LinkOption[] {LinkOption.NOFOLLOW_LINKS});
        } catch (InvalidPathException error) {
            return false;
        }
    }
}

class ByCodePoint implements Comparator {  // as Python orders texts
    public int compare(Object one, Object other) {
        String a = (String) one, b = (String) other;
        for (int i = 0; i < a.length() && i < b.length(); i++) {
            if (a.charAt(i) != b.charAt(i)) {
                return place(a.charAt(i)) - place(b.charAt(i));
            }
        }
        return a.length() - b.length();
    }

    private static int place(char unit) {  // surrogates are of what comes behind all other units
        int place = unit;
        return Character.isSurrogate(unit) ? place + 0x10000 : place;
    }
}
""".replace("UNREADABLE_NAME", UNREADABLE_NAME)
