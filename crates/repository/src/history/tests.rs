use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use super::bound::MOST_DEPTH;
use super::*;

/// Files that a commit writes, or removes.
type Files<'f> = &'f [(&'f str, Option<&'f str>)];

/// Creates a repository of commits, each with its date and files.
fn made(commits: &[(&str, Files<'_>)]) -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("shapes");
    fs::create_dir(&dir).unwrap();
    run(&dir, "", &["init", "-q", "-b", "main"]);
    for (date, files) in commits {
        for (path, text) in *files {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text {
                Some(text) => fs::write(path, text).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
        run(&dir, date, &["add", "-A"]);
        run(&dir, date, &["commit", "-q", "-m", date]);
    }
    (temporary, dir)
}

fn run(dir: &Path, date: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["-c", "commit.gpgSign=false"]).args(arguments);
    for (name, value) in [("NAME", "n"), ("EMAIL", "n@example.org"), ("DATE", date)] {
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_{name}"), value);
        }
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const OLD: &str = "2023-12-31T23:59:59Z";
const NEW: &str = "2024-01-01T00:00:00Z";

/// Nobody else opens a named pipe, so git would wait forever.
#[test]
fn what_is_neither_file_nor_folder_is_named_before_git_opens_it() {
    let file: Files<'_> = &[("a.py", Some("x = 1\n"))];
    for name in [
        "HEAD", "config", "index", "packed-refs", "shallow", "commondir", "refs/heads/x",
        "objects/pack/x.idx",
    ] {
        let (_guard, dir) = made(&[(OLD, file)]);
        let path = dir.join(".git").join(name);
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = History::open(&dir).map(drop).unwrap_err().to_string();
        assert!(error.contains(&format!(".git/{name} is neither a file nor a folder")), "{error}");
    }
    // In a folder that a file names, as for submodules, and through a link.
    let (_guard, dir) = made(&[(OLD, file)]);
    fs::rename(dir.join(".git"), dir.join("own")).unwrap();
    fs::write(dir.join(".git"), "gitdir: own\n").unwrap();
    History::open(&dir).unwrap();
    fs::remove_file(dir.join("own/HEAD")).unwrap();
    assert!(Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap().success());
    std::os::unix::fs::symlink("../pipe", dir.join("own/HEAD")).unwrap();
    let error = History::open(&dir).map(drop).unwrap_err().to_string();
    assert!(error.contains("own/HEAD is neither"), "{error}");
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Returns everything read from a repository, or the reason why it is not read; fails if reading takes a minute.
fn read_in_time(dir: &Path) -> String {
    let (sender, receiver) = mpsc::channel();
    let dir = dir.to_owned();
    std::thread::spawn(move || {
        let read = || -> Result<String> {
            let history = History::open(&dir)?;
            let mut read = String::new();
            for commit in history.commits("2023-01-01")? {
                history.check(&commit)?.unwrap();
                for change in history.changes(&commit, Language::Python)?.unwrap() {
                    read += &format!("{change:?} {:?}\n", history.edit(&change)?.unwrap());
                }
                read += &format!("{:?}\n", history.files(&commit.id, "s", Language::Python)?);
            }
            let lines = history.lines(Language::Python)?.unwrap();
            Ok(format!("{read}{}", lines.hold("new", "2025-01-01T00:00:00Z")))
        };
        let _ = sender.send(read().unwrap_or_else(|error| error.to_string()));
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("reading takes a minute")
}

/// Each of these made git wait or compute forever, or use all memory.
#[test]
fn settings_and_attributes_of_a_repository_do_not_reach_git() {
    let old = format!("{}\nb\n", "a".repeat(3000));
    let new = format!("{old}new\n");
    let commits: [(&str, Files<'_>); 2] =
        [(OLD, &[("a.py", Some(&old))]), (NEW, &[("a.py", Some(&new))])];
    let (_guard, dir) = made(&commits);
    let wanted = read_in_time(&dir);
    assert!(wanted.contains("added: 2..3") && wanted.ends_with("true"), "{wanted}");
    let set = |dir: &Path, key: &str, value: &str| drop(run(dir, "", &["config", key, value]));
    let prepare = |name: &str, dir: &Path| {
        let fifo = dir.join("fifo");
        match name {
            "a device of attributes" => set(dir, "core.attributesFile", "/dev/zero"),
            "a pipe of attributes" => set(dir, "core.attributesFile", fifo.to_str().unwrap()),
            "a pipe of settings" => set(dir, "include.path", "../fifo"),
            "a pipe of settings if" => set(dir, "includeIf.gitdir:/**.path", "../fifo"),
            "a pipe among the files" => pipe(&dir.join(".gitattributes")),
            _ => {
                set(dir, "diff.x.xfuncname", r"(a*)(a*)(a*)(a*)(a*)\1\2\3\4\5c");
                fs::write(dir.join(".git/info/attributes"), "* diff=x\n").unwrap();
            }
        }
        pipe(&fifo);
    };
    for name in [
        "a device of attributes", "a pipe of attributes", "a pipe of settings",
        "a pipe of settings if", "a pipe among the files", "a pattern without end",
    ] {
        let (_guard, dir) = made(&commits);
        prepare(name, &dir);
        assert_eq!(read_in_time(&dir), wanted, "{name}");
    }
}

#[test]
fn a_reftable_is_refused_with_a_way_out() {
    let (guard, dir) = made(&[(OLD, &[("a.py", Some("a\n"))])]);
    pipe(&guard.path().join("fifo"));
    fs::create_dir(dir.join(".git/reftable")).unwrap();
    fs::write(dir.join(".git/reftable/tables.list"), "../../../fifo\n").unwrap();
    fs::write(dir.join(".git/HEAD"), "ref: refs/heads/.invalid\n").unwrap();
    run(&dir, "", &["config", "--file", ".git/config", "core.repositoryFormatVersion", "1"]);
    run(&dir, "", &["config", "--file", ".git/config", "extensions.refStorage", "reftable"]);
    let said = read_in_time(&dir);
    assert!(
        said.contains("a reftable, which is not supported; clone it with `git clone"),
        "{said}"
    );
}

/// Returns a list of packs under a path other than the repository's own.
fn with_pack_elsewhere(list: &[u8], path: &str) -> Vec<u8> {
    let number = |at: usize| u64::from_be_bytes(list[at..at + 8].try_into().unwrap()) as usize;
    let chunks = usize::from(list[6]);
    let places: Vec<usize> = (0..=chunks).map(|chunk| 16 + 12 * chunk).collect();
    assert_eq!(&list[12..16], b"PNAM");
    let (start, end) = (number(places[0]), number(places[1]));
    let mut names = format!("{path}\0").into_bytes();
    names.resize(names.len().next_multiple_of(4), 0);
    let mut forged = list.to_owned();
    for place in &places[1..] {
        let moved = (number(*place) + names.len() - (end - start)) as u64;
        forged[*place..place + 8].copy_from_slice(&moved.to_be_bytes());
    }
    forged.splice(start..end, names);
    forged
}

#[test]
fn a_list_of_packs_leads_to_no_other_history() {
    let (guard, private) =
        made(&[(OLD, &[("a.py", Some("a\n"))]), (NEW, &[("b.py", Some("b\n"))])]);
    run(&private, NEW, &["gc", "-q"]);
    run(&private, NEW, &["multi-pack-index", "write"]);
    let head = run(&private, NEW, &["rev-parse", "HEAD"]);
    let pack = private.join(".git/objects/pack");
    let list = fs::read(pack.join("multi-pack-index")).unwrap();
    let packs = fs::read_dir(&pack).unwrap().map(|entry| entry.unwrap().path());
    let index = packs.into_iter().find(|path| path.extension().is_some_and(|it| it == "idx"));
    let index = index.unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let wanted = read_in_time(&private);
    assert!(wanted.contains("b.py"), "{wanted}");
    run(guard.path(), OLD, &["init", "-q", "--bare", "packs"]);
    let dir = guard.path().join("packs");
    fs::write(dir.join("HEAD"), &head).unwrap();
    let elsewhere = format!("../../../shapes/.git/objects/pack/{index}");
    let forged = with_pack_elsewhere(&list, &elsewhere);
    fs::create_dir_all(dir.join("objects/pack")).unwrap();
    fs::write(dir.join("objects/pack/multi-pack-index"), forged).unwrap();
    // Plain git does this.
    assert!(run(&dir, "", &["log", "--format=%H", "HEAD"]).starts_with(head.trim_end()));
    let said = read_in_time(&dir);
    assert!(said.contains("git log failed: fatal: bad object HEAD"), "{said}");
    fs::write(pack.join("multi-pack-index"), "MIDX").unwrap();
    assert_eq!(read_in_time(&private), wanted);
}

#[test]
fn a_list_of_shallow_commits_is_no_other_file() {
    let (guard, dir) = made(&[(OLD, &[("a.py", Some("a\n"))])]);
    let (shallow, secret) = (dir.join(".git/shallow"), guard.path().join("secret"));
    fs::write(&secret, "password\n").unwrap();
    std::os::unix::fs::symlink(&secret, &shallow).unwrap();
    let of_link = read_in_time(&dir);
    fs::remove_file(&shallow).unwrap();
    fs::write(&shallow, "password\n").unwrap();
    for said in [of_link, read_in_time(&dir)] {
        assert!(said.contains(".git/shallow is not a list of commits"), "{said}");
        assert!(!said.contains("password"), "{said}");
    }
}

#[test]
fn branches_lead_to_a_commit_or_are_named() {
    let (guard, dir) = made(&[(OLD, &[("a.py", Some("a\n"))]), (NEW, &[("b.py", Some("new\n"))])]);
    let wanted = read_in_time(&dir);
    assert!(wanted.contains("b.py"), "{wanted}");
    let (git, head) = (dir.join(".git"), dir.join(".git/HEAD"));
    run(&dir, "", &["pack-refs", "--all", "--prune"]);
    assert!(!git.join("refs/heads/main").exists());
    assert_eq!(read_in_time(&dir), wanted);
    fs::write(&head, "ref: refs/heads/one\n").unwrap();
    fs::write(git.join("refs/heads/one"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(read_in_time(&dir), wanted);
    fs::remove_file(&head).unwrap();
    std::os::unix::fs::symlink("refs/heads/main", &head).unwrap();
    assert_eq!(read_in_time(&dir), wanted);
    fs::remove_file(&head).unwrap();
    fs::write(guard.path().join("secret"), "password\n").unwrap();
    for (text, reason) in [
        ("ref: refs/heads/none\n", "has no commits on refs/heads/none, the branch of its HEAD"),
        ("ref: refs/heads/circle\n", "its HEAD points to a commit through more than 5 names"),
        ("ref: refs/../../../secret\n", ".git/HEAD does not name a commit"),
        ("ref: ../secret\n", ".git/HEAD does not name a commit"),
        ("ref: refs/heads//x\n", ".git/HEAD does not name a commit"),
        ("password\n", ".git/HEAD does not name a commit"),
        (&"0".repeat(5000), ".git/HEAD has more than 4096 bytes"),
    ] {
        fs::write(git.join("refs/heads/circle"), "ref: refs/heads/circle\n").unwrap();
        fs::write(&head, text).unwrap();
        let said = read_in_time(&dir);
        assert!(said.contains(reason) && !said.contains("password"), "{said}");
    }
    // A tag of itself, which git would follow forever.
    let itself = "ab".repeat(20);
    object(&dir, "tag", format!("object {itself}\ntype tag\ntag x\n").as_bytes(), Some(&itself));
    fs::write(&head, format!("{itself}\n")).unwrap();
    let said = read_in_time(&dir);
    assert!(said.contains("its HEAD points to a tag instead of a commit"), "{said}");
    // Ids of SHA-256.
    let dir = guard.path().join("long");
    fs::create_dir(&dir).unwrap();
    run(&dir, "", &["init", "-q", "--object-format=sha256"]);
    for (date, text) in [(OLD, "a\n"), (NEW, "a\nnew\n")] {
        fs::write(dir.join("a.py"), text).unwrap();
        run(&dir, date, &["add", "-A"]);
        run(&dir, date, &["commit", "-q", "-m", date]);
    }
    let read = read_in_time(&dir);
    assert!(read.contains("added: 1..2") && read.ends_with("true"), "{read}");
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_are_left_out_are_named() {
    use std::os::unix::ffi::OsStrExt;
    let (_guard, dir) = made(&[(OLD, &[("a.py", Some("x = 1\n")), ("e.java", Some("e\n"))])]);
    fs::write(dir.join("latin.py"), b"# caf\xe9\n").unwrap();
    fs::write(dir.join(std::ffi::OsStr::from_bytes(b"bad\xff.py")), "x\n").unwrap();
    std::os::unix::fs::symlink("a.py", dir.join("link.py")).unwrap();
    run(&dir, NEW, &["add", "-A"]);
    run(&dir, NEW, &["commit", "-q", "-m", "odd"]);
    let history = History::open(&dir).unwrap();
    let (files, left_out) = history.files("HEAD", "s", Language::Python).unwrap().unwrap();
    assert_eq!(files.files.len(), 1);
    let left_out = left_out.iter().map(|file| (file.path.as_str(), file.reason));
    let wanted = [
        ("bad\u{fffd}.py", LeftOutReason::Name),
        ("link.py", LeftOutReason::Link),
        ("latin.py", LeftOutReason::Encoding),
    ];
    assert_eq!(left_out.collect::<Vec<_>>(), wanted);
}

#[test]
fn commits_since_a_day_and_what_they_changed() {
    let (_guard, dir) = made(&[
        (OLD, &[("a.py", Some("x = 1\ny = 2\nz = 3\n")), ("old.py", Some("1\n2\n3\n4\n5\n6\n"))]),
        (OLD, &[("b.py", Some("late\n"))]),
        (
            NEW,
            &[
                ("a.py", Some("new = 0\nx = 1\nz = 4\nend = 5\nmore = 6\n")),
                ("é é/c.py", Some("c\r\nd\r\n")),
                (".hidden/d.py", Some("d\n")),
                ("e.java", Some("e\n")),
                ("latin.py", Some("f\rg\n")),
                ("old.py", None),
                ("moved.py", Some("1\n2\n3\n4\n5\n6\n")),
            ],
        ),
    ]);
    let history = History::open(&dir).unwrap();
    assert_eq!(history.name(), "shapes");
    let commits = history.commits("2024-01-01").unwrap();
    assert_eq!(commits.len(), 1);
    assert_eq!(commits[0].date, NEW);
    assert_eq!(history.commits("2023-12-31").unwrap().len(), 2, "the first has no parent");
    assert!(history.commits("2024-01-02").unwrap().is_empty());
    let changes = history.changes(&commits[0], Language::Python).unwrap().unwrap();
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["a.py", "latin.py", "é é/c.py"]);
    let edit = history.edit(&changes[0]).unwrap().unwrap().unwrap();
    let hunk = |removed, added| Hunk { removed, added };
    assert_eq!(edit.hunks, [hunk(0..0, 0..1), hunk(1..3, 2..5)]);
    assert_eq!(history.edit(&changes[1]).unwrap(), Ok(None), "a line that git does not count");
    let edit = history.edit(&changes[2]).unwrap().unwrap().unwrap();
    assert_eq!((edit.before.as_str(), edit.after.as_str()), ("", "c\nd\n"));
    assert_eq!(edit.hunks, [hunk(0..0, 0..2)]);
    let (files, left_out) =
        history.files(&commits[0].parent, "s", Language::Python).unwrap().unwrap();
    let left_out: Vec<String> =
        left_out.iter().map(|file| format!("{}: {}", file.path, file.reason)).collect();
    assert_eq!(left_out, [""; 0]);
    let files: Vec<(&str, &str)> =
        files.files.iter().map(|file| (&*file.path, &*file.text)).collect();
    let old = ("s/old.py", "1\n2\n3\n4\n5\n6\n");
    assert_eq!(files, [("s/a.py", "x = 1\ny = 2\nz = 3\n"), ("s/b.py", "late\n"), old]);
    // Lines that existed before, in any order and file, but not lines from the same moment.
    let lines = history.lines(Language::Python).unwrap().unwrap();
    assert!(lines.hold("  z = 3\n\n)\nlate", NEW) && !lines.hold("late\nnew = 0", NEW));
    assert!(lines.hold("new = 0", "2024-01-01T00:00:01Z") && !lines.hold(")", NEW));
}

const MOVED: &str = "1\n2\n3\n4\n5\n6\n7\n8\n";
const LIKE: &str = "1\n2\n3\n4\n5\n6\n7\nnew\n";

#[test]
fn settings_of_a_repository_change_nothing_and_start_nothing() {
    let old = [("a.py", Some("a\nb\nc\nd\n")), ("b.py", Some("e\n"))];
    let moved = [("m.py", Some(MOVED)), ("n.py", Some(MOVED))];
    let new = [("a.py", Some("a\nx\nb\nc\nd\n")), ("m.py", None), ("n.py", None)];
    let like = [("o.py", Some(LIKE)), ("p.py", Some(LIKE))];
    let (_guard, dir) = made(&[(OLD, &[old, moved].concat()), (NEW, &[&new[..], &like].concat())]);
    let ran = dir.join("ran");
    let program = format!("touch '{}'; cat", ran.display());
    for (key, value) in [
        ("diff.external", program.as_str()),
        ("diff.odd.textconv", &program),
        ("core.fsmonitor", &program),
        ("core.pager", &program),
        ("diff.context", "9"),
        ("diff.algorithm", "patience"),
        ("color.ui", "always"),
        ("log.showSignature", "true"),
        ("log.showRoot", "false"),
        ("log.follow", "true"),
        ("i18n.logOutputEncoding", "UTF-16"),
        ("diff.renameLimit", "1"),
        ("diff.orderFile", "/nowhere"),
        ("diff.noPrefix", "false"),
    ] {
        run(&dir, OLD, &["config", key, value]);
    }
    fs::write(dir.join(".git/info/attributes"), "a.py diff=odd\nb.py -diff\n").unwrap();
    // Its bare folder, too, which has the checkout's name.
    for dir in [dir.clone(), dir.join(".git")] {
        let history = History::open(&dir).unwrap();
        assert_eq!(history.name(), "shapes");
        let commits = history.commits("2024-01-01").unwrap();
        let changes = history.changes(&commits[0], Language::Python).unwrap().unwrap();
        let edit = history.edit(&changes[0]).unwrap().unwrap().unwrap();
        assert_eq!(edit.hunks, [Hunk { removed: 1..1, added: 1..2 }]);
        assert_eq!(changes.len(), 1, "moved files are left out");
        assert!(history.lines(Language::Python).unwrap().unwrap().hold("b\ne", NEW));
    }
    assert!(!ran.exists());
}

/// Another git diffs a submodule, and would use the inner repository's settings.
#[test]
fn a_repository_within_is_not_read_and_starts_nothing() {
    let (_guard, dir) = made(&[(OLD, &[("a.py", Some("a\n"))])]);
    let (inner, ran) = (dir.join("sub.py"), dir.join("ran"));
    fs::create_dir(&inner).unwrap();
    run(&inner, "", &["init", "-q"]);
    for (date, text) in [(OLD, "secret = 1\n"), (NEW, "secret = 2\n")] {
        fs::write(inner.join("s.py"), text).unwrap();
        run(&inner, date, &["add", "-A"]);
        run(&inner, date, &["commit", "-q", "-m", date]);
        run(&dir, date, &["-c", "advice.addEmbeddedRepo=false", "add", "sub.py"]);
        run(&dir, date, &["commit", "-q", "-m", date]);
    }
    run(&dir, "", &["config", "diff.submodule", "diff"]);
    run(&inner, "", &["config", "diff.external", &format!("touch '{}'", ran.display())]);
    // Plain git does this.
    run(&dir, "", &["log", "--patch", "--no-ext-diff", "--", "*.py"]);
    assert!(ran.exists());
    fs::remove_file(&ran).unwrap();
    let history = History::open(&dir).unwrap();
    let lines = history.lines(Language::Python).unwrap().unwrap();
    for commit in history.commits("2023-01-01").unwrap() {
        for change in history.changes(&commit, Language::Python).unwrap().unwrap() {
            assert_eq!(change.path, "a.py");
        }
    }
    assert!(lines.hold("a", NEW) && !lines.hold("secret = 2", "2025-01-01T00:00:00Z"));
    assert!(!ran.exists());
}

#[test]
fn what_is_no_repository_or_no_day_is_refused() {
    let (guard, dir) = made(&[(OLD, &[("d/a.py", Some("a\n"))])]);
    let said = |path: &Path| History::open(path).unwrap_err().to_string();
    for inner in ["d", ".git/refs"] {
        let said = said(&dir.join(inner));
        assert!(
            said.contains("is not a Git repository, but a folder inside the repository"),
            "{said}"
        );
    }
    let plain = guard.path().join("plain");
    fs::create_dir(&plain).unwrap();
    assert!(said(&plain).ends_with("plain: is not a Git repository"), "{}", said(&plain));
    let history = History::open(&dir).unwrap();
    for day in [
        "", "2024", "2024-1-1", "2024-13-01", "2024-00-01", "2024-01-32", "2024-02-30",
        "yesterday", "2024-01-01T00",
    ] {
        let error = history.commits(day).unwrap_err().to_string();
        assert!(error.contains(&format!("'{day}'")), "{error}");
    }
}

#[test]
fn a_clone_that_lacks_contents_says_so() {
    let (guard, dir) = made(&[(OLD, &[("a.py", Some("a\n"))]), (NEW, &[("a.py", Some("a\nb\n"))])]);
    run(&dir, OLD, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", dir.display());
    let clone = |name: &str, flag: &str| {
        run(guard.path(), OLD, &["clone", "-q", "--bare", flag, &url, name]);
        History::open(&guard.path().join(name)).unwrap()
    };
    let partial = clone("partial.git", "--filter=blob:none");
    assert_eq!(partial.name(), "partial");
    let commit = partial.commits("2024-01-01").unwrap().remove(0);
    let change = partial.changes(&commit, Language::Python).unwrap().unwrap().remove(0);
    let error = partial.edit(&change).unwrap_err().to_string();
    assert!(error.contains("lacks the content of files"), "{error}");
    assert!(partial.files(&commit.parent, "s", Language::Python).is_err());
    let shallow = clone("shallow.git", "--depth=1");
    assert!(shallow.is_shallow() && !partial.is_shallow());
    assert!(shallow.commits("2024-01-01").unwrap().is_empty());
}

/// Adds a commit whose tree refers to one tree `width` times, which refers to another, and so on; the last tree refers to one
/// text.
fn with_folded_tree(dir: &Path, width: usize, depth: usize, text: &str) {
    let file = dir.join("folded");
    fs::write(&file, text).unwrap();
    let blob = run(dir, OLD, &["hash-object", "-w", "folded"]);
    fs::remove_file(&file).unwrap();
    let made = |entry: &dyn Fn(usize) -> String| {
        let listed: String = (0..width).map(entry).collect();
        fs::write(&file, listed).unwrap();
        let mut command = Command::new("git");
        command.arg("-C").arg(dir).arg("mktree").stdin(fs::File::open(&file).unwrap());
        let output = command.output().unwrap();
        assert!(output.status.success());
        fs::remove_file(&file).unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let mut tree = made(&|number| format!("100644 blob {}\t{number}.py\n", blob.trim_end()));
    for _ in 1..depth {
        tree = made(&|number| format!("040000 tree {tree}\td{number}\n"));
    }
    let commit = run(dir, NEW, &["commit-tree", &tree, "-p", "HEAD", "-m", "folded"]);
    run(dir, NEW, &["update-ref", "HEAD", commit.trim_end()]);
}

#[test]
fn trees_that_name_one_another_have_bounds() {
    let bound = |width, depth, text: &str| {
        let (_guard, dir) = made(&[(OLD, &[("a.py", Some("a\n"))])]);
        with_folded_tree(&dir, width, depth, text);
        let history = History::open(&dir).unwrap();
        let commit = history.commits("2024-01-01").unwrap().remove(0);
        match history.check(&commit).unwrap() {
            Err(skipped) => {
                let lines = history.lines(Language::Python).unwrap();
                assert_eq!(lines.err().as_ref(), Some(&skipped));
                Err(skipped.bound)
            }
            Ok(()) => history.files(&commit.id, "s", Language::Python).unwrap(),
        }
        .map(|(repository, _)| repository.files)
    };
    assert_eq!(bound(10, 40, "x\n"), Err(Bound::Entries));
    assert_eq!(bound(200_001, 1, "x\n"), Err(Bound::Files));
    assert_eq!(bound(10, 4, &"x = 1\n".repeat(5_000)), Err(Bound::CopiedBytes));
    let files = bound(10, 2, "x\n").unwrap();
    assert_eq!((files.len(), &*files[11].path, &*files[11].text), (100, "s/d1/1.py", "x\n"));
    assert!(files.iter().enumerate().all(|(number, file)| file.same_as as usize == number));
}

/// Writes objects of any content, and returns their ids. An object can be given another object's id, which git does not check.
fn objects(dir: &Path, kind: &str, made: &[(Vec<u8>, Option<String>)]) -> Vec<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["hash-object", "--literally", "-w", "-t", kind]);
    for (number, (content, _)) in made.iter().enumerate() {
        fs::write(dir.join(format!("object-{number}")), content).unwrap();
        command.arg(format!("object-{number}"));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = |id: &str| dir.join(".git/objects").join(&id[..2]).join(&id[2..]);
    let ids = String::from_utf8(output.stdout).unwrap();
    let named = ids.lines().zip(made).map(|(id, (_, other))| {
        let Some(other) = other else { return id.to_owned() };
        fs::create_dir_all(path(other).parent().unwrap()).unwrap();
        fs::copy(path(id), path(other)).unwrap();
        other.clone()
    });
    named.collect()
}

fn object(dir: &Path, kind: &str, content: &[u8], id: Option<&str>) -> String {
    objects(dir, kind, &[(content.to_owned(), id.map(str::to_owned))]).remove(0)
}

/// Returns an entry of a tree.
fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let bytes = (0..id.len() / 2).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16));
    let id: Vec<u8> = bytes.map(|byte| byte.unwrap()).collect();
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &id].concat()
}

/// Commits a tree.
fn commit_tree(dir: &Path, tree: &str) {
    let commit = run(dir, NEW, &["commit-tree", tree, "-p", "HEAD", "-m", "made"]);
    run(dir, NEW, &["update-ref", "HEAD", commit.trim_end()]);
}

/// Returns the bound that the second of three commits exceeds; it is the third commit's parent. The first and the last commit
/// are good.
fn bound_of_one(tree: impl Fn(&Path, &str) -> String) -> Bound {
    let (_guard, dir) =
        made(&[(OLD, &[("a.py", Some("a\n"))]), (NEW, &[("a.py", Some("a\nb\n"))])]);
    let good = run(&dir, "", &["rev-parse", "HEAD^{tree}"]);
    let file = run(&dir, "", &["rev-parse", "HEAD:a.py"]);
    let first = run(&dir, "", &["rev-parse", "HEAD"]);
    commit_tree(&dir, &tree(&dir, file.trim_end()));
    let bad = run(&dir, "", &["rev-parse", "HEAD"]);
    for tree in [good.trim_end(), "HEAD~3^{tree}"] {
        let tree = run(&dir, "", &["rev-parse", tree]);
        commit_tree(&dir, tree.trim_end());
    }
    let history = History::open(&dir).unwrap();
    let (mut bounds, mut read) = (Vec::new(), Vec::new());
    for commit in history.commits("2024-01-01").unwrap() {
        match history.check(&commit).unwrap() {
            Ok(()) => {
                assert_eq!(history.changes(&commit, Language::Python).unwrap().unwrap().len(), 1);
                read.push(commit.id);
            }
            Err(skipped) => {
                assert_eq!(skipped.id, bad.trim_end());
                bounds.push(skipped.bound);
            }
        }
    }
    assert!(read.len() == 2 && read.contains(&first.trim_end().to_owned()), "{read:?} {bounds:?}");
    let lines = history.lines(Language::Python).unwrap();
    assert_eq!(lines.err().map(|skipped| skipped.bound), Some(bounds[0]));
    assert_eq!(bounds[0], bounds[1]);
    bounds[0]
}

#[test]
fn a_damaged_commit_is_skipped_and_no_other() {
    let circle = bound_of_one(|dir, file| {
        let [one, other] = ["ab", "cd"].map(|digits| digits.repeat(20));
        let tree = |next: &str| [entry("100644", "a.py", file), entry("40000", "d", next)].concat();
        object(dir, "tree", &tree(&other), Some(&one));
        object(dir, "tree", &tree(&one), Some(&other));
        object(dir, "tree", &tree(&one), None)
    });
    assert_eq!(circle, Bound::Depth);
    let nested = |folders: usize| {
        move |dir: &Path, file: &str| {
            let tree = object(dir, "tree", &entry("100644", "a.py", file), None);
            let id = |number: usize| format!("{number:040x}");
            let folder = |number: usize| {
                let below = if number == 1 { tree.clone() } else { id(number - 1) };
                (entry("40000", "d", &below), Some(id(number)))
            };
            objects(dir, "tree", &(1..folders).map(folder).collect::<Vec<_>>());
            object(dir, "tree", &entry("40000", "d", &id(folders - 1)), None)
        }
    };
    assert_eq!(bound_of_one(nested(MOST_DEPTH + 1)), Bound::Depth);
    let nameless = bound_of_one(|dir, file| object(dir, "tree", &entry("100644", "", file), None));
    assert_eq!(nameless, Bound::Form);
    let file_as_folder =
        bound_of_one(|dir, file| object(dir, "tree", &entry("40000", "d", file), None));
    assert_eq!(file_as_folder, Bound::Form);
    let cut_off = bound_of_one(|dir, file| {
        let entries = (1000..2000).flat_map(|number| entry("100644", &number.to_string(), file));
        let below = object(dir, "tree", &entries.collect::<Vec<u8>>(), None);
        let path = dir.join(".git/objects").join(&below[..2]).join(&below[2..]);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        object(dir, "tree", &entry("40000", "d", &below), None)
    });
    assert_eq!(cut_off, Bound::Form);
    // A folder with a mode that git does not write.
    let odd = bound_of_one(|dir, file| {
        let below = object(dir, "tree", &entry("100644", "", file), None);
        object(dir, "tree", &entry("40755", "d", &below), None)
    });
    assert_eq!(odd, Bound::Form);
}

#[test]
fn bytes_of_files_and_paths_have_bounds() {
    let mut count = ByteCount::default();
    for _ in 0..64 {
        assert_eq!(count.add(16 << 20, 1), Ok(()));
    }
    assert_eq!(count.add(16 << 20, 1), Err(Bound::Bytes));
    assert_eq!(ByteCount::default().add((16 << 20) + 1, 1), Err(Bound::FileBytes));
    assert_eq!(ByteCount::default().add(16 << 20, u64::MAX), Err(Bound::CopiedBytes));
    for line in ["\n", "\r", "\u{c}", "\u{2028}"] {
        let (text, mut lines) = (line.repeat(1_000), LineCount::default());
        assert_eq!(lines.add(&text, 20_000), Ok(()), "{line:?}");
        assert_eq!(lines.add("a", 1), Err(Bound::Lines), "{line:?}");
    }
}

/// A commit's message of a few megabytes can expand to gigabytes, which git would read as a whole.
#[cfg(target_os = "linux")]
#[test]
fn memory_of_git_has_a_limit() {
    let (_guard, dir) = made(&[(OLD, &[("a.py", Some("a\n"))])]);
    let history = History::open(&dir).unwrap();
    let reader = super::git::ObjectReader::start(&history.git).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", reader.id())).unwrap();
    let limit = limits.lines().find(|line| line.starts_with("Max data size")).unwrap();
    assert!(limit.contains(" 2147483648 "), "{limit}");
}

#[test]
fn a_text_that_is_too_long_to_compare_is_left_out() {
    let long = "\n".repeat(MOST_TEXT_LINES + 1);
    let files: Files<'_> = &[("a.py", Some(&long)), ("b.py", Some("b\n"))];
    let (_guard, dir) = made(&[(OLD, &[("c.py", Some("c\n"))]), (NEW, files)]);
    let history = History::open(&dir).unwrap();
    let commit = history.commits("2024-01-01").unwrap().remove(0);
    let changes = history.changes(&commit, Language::Python).unwrap().unwrap();
    let edits: Vec<bool> =
        changes.iter().map(|change| history.edit(change).unwrap().unwrap().is_some()).collect();
    assert_eq!(edits, [false, true]);
}

/// In an untrusted repository, each of these would be read instead of its history.
#[cfg(unix)]
#[test]
fn a_history_elsewhere_is_named_and_not_read() {
    use std::os::unix::fs::symlink;

    let (guard, private) =
        made(&[(OLD, &[("a.py", Some("a\n"))]), (NEW, &[("b.py", Some("b\n"))])]);
    let git_dir = private.join(".git");
    let head = run(&private, NEW, &["rev-parse", "HEAD"]);
    let place = |name: &str| guard.path().join(name);
    for name in ["file", "link"] {
        fs::create_dir(place(name)).unwrap();
    }
    fs::write(place("file/.git"), format!("gitdir: {}\n", git_dir.display())).unwrap();
    symlink(&git_dir, place("link/.git")).unwrap();
    for name in ["common", "alternates", "quoted", "objects", "refs", "pack"] {
        run(guard.path(), OLD, &["init", "-q", "--bare", name]);
        fs::write(place(name).join("HEAD"), &head).unwrap();
    }
    fs::write(place("common/commondir"), git_dir.join("").to_str().unwrap()).unwrap();
    let objects = git_dir.join("objects");
    let list = |name: &str| place(name).join("objects/info/alternates");
    fs::write(list("alternates"), format!("# x\n{}\n", objects.display())).unwrap();
    fs::write(list("quoted"), format!("\"{}\"\n", objects.display())).unwrap();
    fs::remove_dir_all(place("objects/objects")).unwrap();
    symlink(&objects, place("objects/objects")).unwrap();
    fs::remove_dir_all(place("refs/refs")).unwrap();
    symlink(git_dir.join("refs"), place("refs/refs")).unwrap();
    run(&private, NEW, &["gc", "-q"]);
    fs::remove_dir_all(place("pack/objects/pack")).unwrap();
    symlink(objects.join("pack"), place("pack/objects/pack")).unwrap();
    for (name, way) in [
        ("file", ".git"),
        ("link", ".git"),
        ("common", "commondir"),
        ("alternates", "objects/info/alternates"),
        ("quoted", "objects/info/alternates"),
        ("objects", "objects"),
        ("refs", "refs"),
        ("pack", "objects/pack"),
    ] {
        let error = History::open(&place(name)).unwrap_err().to_string();
        let wanted = format!("{way} leads out of the repository, to ");
        assert!(error.contains(&wanted) && error.contains("shapes/.git"), "{name}: {error}");
    }
}

#[test]
fn worktrees_and_submodules_have_their_history_elsewhere() {
    let (guard, dir) = made(&[(OLD, &[("a.py", Some("a\n"))]), (NEW, &[("b.py", Some("b\n"))])]);
    run(&dir, NEW, &["worktree", "add", "-q", "../tree"]);
    run(guard.path(), NEW, &["init", "-q", "outer"]);
    let outer = guard.path().join("outer");
    let allowed = ["-c", "protocol.file.allow=always"];
    run(
        &outer,
        NEW,
        &[&allowed[..], &["submodule", "--quiet", "add", "../shapes", "inner"]].concat(),
    );
    run(&outer, NEW, &["submodule", "--quiet", "absorbgitdirs"]);
    for path in [guard.path().join("tree"), outer.join("inner"), dir.join(".git/worktrees/tree")] {
        let history = History::open(&path).unwrap();
        assert_eq!(history.commits("2024-01-01").unwrap().len(), 1, "{}", path.display());
    }
    // Alternates inside the repository are its own.
    fs::rename(dir.join(".git/objects"), dir.join(".git/others")).unwrap();
    fs::create_dir_all(dir.join(".git/objects/info")).unwrap();
    fs::write(dir.join(".git/objects/info/alternates"), "../others\n").unwrap();
    assert_eq!(History::open(&dir).unwrap().commits("2024-01-01").unwrap().len(), 1);
    // A folder that leads to the worktree of another.
    let other = guard.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::copy(guard.path().join("tree/.git"), other.join(".git")).unwrap();
    assert!(History::open(&other).unwrap_err().to_string().contains("leads out of the repository"));
}
