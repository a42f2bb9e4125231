//! `scripts/get-repositories.sh`, with stand-ins for the clients of package registries.

use sha2::{Digest, Sha256};

use crate::benchmarks::zip;
use crate::support::{Place, Ran};

/// Clients that copy archives from the folder `registry`, and note in `asked` what they were asked for.
const CLIENTS: [(&str, &str); 5] = [
    (
        "npm",
        r#"fetch() { echo "$1" >>"$HERE/asked"; cp "$HERE/registry/$2" .; }; fetch "$3" three-3.0.0.tgz"#,
    ),
    (
        "python3",
        r#"case "$2 $3" in
"pip --version") exit ;;
"pip download")
  while [ $# -gt 1 ]; do case $1 in --dest) to=$2 ;; --requirement) pin=$(sed 's/ .*//' "$2") ;; esac; shift; done
  echo "$pin" >>"$HERE/asked"
  cp "$HERE/registry/$pin"* "$to" ;;
*) exec "$PYTHON" "$@" ;;
esac"#,
    ),
    (
        "apt-get",
        r#"for last; do :; done
case $last in update) exit ;; esac
echo "$last" >>"$HERE/asked"
cp "$HERE"/registry/libfour* ."#,
    ),
    ("apt-cache", r#"printf 'Package: libfour-java\nVersion: %s\n' "$(cat "$HERE/version")""#),
    ("xz", ""),
];

/// A registry of four packages, its clients, and a table that names them.
struct Registry {
    place: Place,
}

impl Registry {
    fn new() -> Self {
        let place = Place::empty();
        for (name, script) in CLIENTS {
            place.write(&format!("clients/{name}"), format!("#!/bin/sh\n{script}\n"));
        }
        let long = "x = 1\n".repeat(40_000);
        for (path, text) in [
            ("one-1.0/one/a.py", "a = 1\n"),
            ("one-1.0/one/long.py", &*long),
            ("one-1.0/README", "one\n"),
            ("package/src/b.ts", "let b;\n"),
            ("package/lib/b.js", "var b;\n"),
            ("four/Four.java", "class Four {}\n"),
            ("four/dist/Four.java", "class Four {}\n"),
        ] {
            place.write(path, text);
        }
        let two = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        place.write(
            "registry/two==2.0.whl",
            zip(&vec![two("two/c.py", "c = 1\n"), two("two/c.so", "\n")]),
        );
        place.write("version", "4.0.0+dfsg-2");
        place
            .shell(
                "chmod +x clients/*
                 tar -czf registry/one==1.0.tar.gz one-1.0
                 tar -czf registry/three-3.0.0.tgz package
                 tar -czf registry/libfour-java_4.0.0+dfsg.orig.tar.gz four
                 touch registry/libfour-java_4.0.0+dfsg-2.dsc",
            )
            .done();
        Self { place }
    }

    fn digest(&self, archive: &str) -> String {
        let bytes = std::fs::read(self.place.path("registry").join(archive)).unwrap();
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The table, with the digest of the package from npm.
    fn write_table(&self, three: &str) {
        let one = self.digest("one==1.0.tar.gz");
        let two = self.digest("two==2.0.whl");
        let four = self.digest("libfour-java_4.0.0+dfsg.orig.tar.gz");
        let table = format!(
            "# folder client package sha256 files\n\
             group/one  sdist       one==1.0                  {one}    all\n\
             group/two  wheel-3.11  two==2.0                  {two}    python\n\
             short/one  sdist       one==1.0                  {one}    python-200k\n\
             ts/three   npm         @scope/three@3.0.0        {three}  src\n\
             java/four  apt         libfour-java==4.0.0+dfsg  {four}   no-dist\n"
        );
        self.place.write("table", table);
    }

    fn get_with(&self, path: &str, names: &str) -> Ran {
        let line = format!(
            "HERE=$PWD PYTHON=$(command -v python3) bash=$(command -v bash); export HERE PYTHON
             PATH={path} \"$bash\" \"$PROJECT/scripts/get-repositories.sh\" 'to here' --table table {names}"
        );
        self.place.shell(&line)
    }

    fn get(&self, names: &str) -> Ran {
        self.get_with("$PWD/clients:$PATH", names)
    }

    /// Packages that the clients were asked for since the last call.
    fn asked(&self) -> Vec<String> {
        let file = self.place.path("asked");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn measured_repositories_are_laid_out_by_group_and_fetched_once() {
    let registry = Registry::new();
    registry.write_table(&registry.digest("three-3.0.0.tgz"));
    registry.get("").done();
    let files = registry.place.files("to here");
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        [
            "group/one/README", "group/one/one/a.py", "group/one/one/long.py",
            "group/two/two/c.py", "java/four/Four.java", "short/one/one/a.py", "ts/three/b.ts",
        ]
    );
    // Two groups share an archive.
    let asked = ["one==1.0", "two==2.0", "@scope/three@3.0.0", "libfour-java=4.0.0+dfsg-2"];
    assert_eq!(registry.asked(), asked);

    registry.get("").done().says(&["group/one: already there", "java/four: already there"]);
    assert_eq!(registry.asked(), [""; 0]);
    std::fs::remove_dir_all(registry.place.path("to here")).unwrap();
    registry.get("short java/four").done();
    assert_eq!(registry.asked(), ["one==1.0", "libfour-java=4.0.0+dfsg-2"]);
    registry.get("shorter").failed().says(&["unknown group or repository 'shorter'"]);
}

#[test]
fn another_digest_or_version_fails_its_repository_alone_and_the_next_call_fetches_it() {
    let registry = Registry::new();
    registry.write_table(&"0".repeat(64));
    registry.place.write("version", "4.1.0-1");
    registry.get("").partly().says(&[
        "@scope/three@3.0.0: the archive three-3.0.0.tgz has another digest than 000000",
        "libfour-java: this system's sources have 4.1.0-1, not 4.0.0+dfsg; use a system that has it",
        "not fetched: ts/three java/four",
    ]);
    assert_eq!(registry.place.count("to here/group"), 4);
    registry.asked();
    registry.write_table(&registry.digest("three-3.0.0.tgz"));
    registry.place.write("version", "1:4.0.0+dfsg-3~bpo1");
    registry.get("").done();
    assert_eq!(registry.asked(), ["@scope/three@3.0.0", "libfour-java=1:4.0.0+dfsg-3~bpo1"]);
}

#[test]
fn a_missing_client_is_named_and_costs_only_what_needs_it() {
    let registry = Registry::new();
    registry.write_table(&registry.digest("three-3.0.0.tgz"));
    let tools =
        "bash cat cp dirname find grep gzip mkdir mv rm sed sh sha256sum sort tail tar touch";
    let line =
        format!("mkdir few && for tool in {tools}; do ln -s \"$(command -v $tool)\" few; done");
    registry.place.shell(&line).done();
    registry.place.shell("cp clients/python3 few").done();
    registry.get_with("$PWD/few", "group/one short ts java").partly().says(&[
        "npm is missing; install it",
        "apt-get is missing; run this on Debian 12",
        "not fetched: ts/three java/four",
    ]);
    assert_eq!(registry.place.count("to here/short"), 1);
    registry.get_with("$PWD/few", "ts").failed().says(&["npm is missing", "not fetched: ts/three"]);
}

/// The script fetches the groups that the documents' commands and `scripts/tables.py` use.
#[test]
fn groups_in_the_documents_are_in_the_table() {
    let project = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(project.join(path)).unwrap();
    let table = read("scripts/repositories.txt");
    let (results, script) = (read("docs/results.md"), read("scripts/tables.py"));
    let in_page = results.split("--repos-dir ").skip(1);
    // `bench.sample(NAME, GROUP, KIND, …)` draws tasks of a group.
    let in_script = script.split("bench.sample(").skip(1);
    let in_script = in_script.filter_map(|call| call.split(", ").nth(1)?.strip_prefix('"'));
    let mut count = 0;
    for group in in_page.chain(in_script) {
        let name = group.split([' ', '\n', '"']).next().unwrap();
        count += 1;
        let start = format!("\n{name}/");
        assert!(table.contains(&start), "no repository of scripts/repositories.txt is in {name}");
    }
    assert!(count >= 12, "{count}");
}
