//! The README and the pages of `docs/`: their shell blocks run as they stand there, and their links lead somewhere.
//!
//! The blocks of a page that are marked `sh` run one after the other, as one script of `sh -eu`, in a fresh folder. Blocks
//! that only show something are marked with another language (`text`, `toml`, …). Comments in the page, which no reader
//! sees, say what else a block needs:
//!
//! ```text
//! <!-- setup
//! cp -r "$PROJECT/data/repos" repos
//! -->
//! <!-- needs: python3 -->         the page is left out where this program is missing
//! <!-- ends: 1 -->                the exit status of the next block, where it is not 0
//! ```
//!
//! Files of the project are below `$PROJECT`. Blocks that need a server, a GPU or the network meet stand-ins: the URLs of
//! [`SERVERS`] are those of a server of this machine, and [`PROGRAMS`] stand in for programs of others. [`SMALLER`] has what
//! a test does with less.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::benchmarks;
use crate::support::server::{Answer, Request, ok, server};
use crate::support::{Place, Ran};

/// Languages of blocks that show something and are not run.
const SHOWN: [&str; 8] = ["text", "console", "toml", "json", "yaml", "python", "rust", "r"];

/// Pages that `scripts/book.sh` lets the program write.
const GENERATED: [&str; 2] = ["commands.md", "every-setting.md"];

/// URLs of servers in the pages.
const SERVERS: [&str; 3] =
    ["http://localhost:8000", "http://localhost:8001", "http://127.0.0.1:8081"];

/// What the pages say, and what the test does instead, since it takes less time.
const SMALLER: [(&str, &str); 2] =
    [("--per-repo 200", "--per-repo 5"), ("--per-repo 40", "--per-repo 5")];

/// Programs that pages name: none of them must be there, and none must fetch or train.
const PROGRAMS: [(&str, &str); 14] = [
    // `cargo run` runs the program that is built; other commands must fit the package.
    (
        "cargo",
        r#"test -f Cargo.toml
case "$*" in
"run --release -- "*) shift 3; exec repoformer "$@" ;;
"install --locked --path ."*) ;;
"run --release --example "*) test -f "examples/$4.rs" ;;
"bench --bench "*) grep -q "^name = \"$3\"" Cargo.toml ;;
"test --test it -- --ignored "*) grep -q "^mod $6;" tests/it/main.rs ;;
"test --locked --features serve") ;;
*) echo "cargo $*: unknown" >&2; exit 1 ;;
esac"#,
    ),
    (
        "pip",
        r#"case "$*" in
"install .") test -f pyproject.toml ;;
"install dist/"*) test -f "$2" ;;
"install -r "*) test -f "$3" ;;
"install "[a-z]*) ;;
*) echo "pip $*: unknown" >&2; exit 1 ;;
esac"#,
    ),
    ("rustup", r#"test "$1 $2" = "target add""#),
    // Files with the names that the true script gives them.
    (
        "dist.sh",
        r#"version=$(repoformer --version | cut -d " " -f 2)
mkdir dist
for target; do
  name=repoformer-$version-$target
  case $target in
  x86_64-unknown-linux-gnu) touch "dist/repoformer-$version-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl" ;;
  x86_64-unknown-linux-musl)
    mkdir "$name"
    ln -s "$(command -v repoformer)" "$name/repoformer"
    tar -czf "dist/$name.tar.gz" "$name"
    rm -r "$name"
    ;;
  esac
done"#,
    ),
    // The program of this machine, in the folder that is mounted.
    (
        "docker",
        r#"test -f Dockerfile
case "$1" in
build) ;;
run)
  shift
  while test "$1" != repoformer; do shift; done
  shift
  exec repoformer "${@:-run}"
  ;;
esac"#,
    ),
    // `.ci/workflows` runs both.
    (
        "make",
        r#"test -f Makefile; for what; do :; done; test "${what#*=}" != "$what" || grep -q "^$what:" Makefile"#,
    ),
    ("snakemake", r#"test -f Snakefile"#),
    ("man", r#"test "$1" = -l; test -f "$2""#),
    (
        "python",
        r#"test "$1 ${2-}" = "-m repoformer" && shift 2 && exec repoformer "$@"
exec python3 "$PROJECT/tests/fixtures/book/stand_in.py" "$@""#,
    ),
    ("lm_eval", r#"exec python3 "$PROJECT/tests/fixtures/book/stand_in.py" lm_eval "$@""#),
    ("jupyter", r#"test "$1" = execute; test -f "$2""#),
    ("accelerate", r#"test "$1" = launch; shift; exec python "$@""#),
    ("torchrun", r#"test "$1" = --nproc_per_node; shift 2; exec python "$@""#),
    // The true script, with small archives from a server of this machine.
    (
        "get-benchmarks.sh",
        r#"exec "$PROJECT/scripts/get-benchmarks.sh" --base-url "$MIRROR" --checksums "$SUMS" "$@""#,
    ),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A page, with the parts of its text that are not prose.
struct Page {
    /// Path below the project's folder.
    path: String,
    parts: Vec<Part>,
    /// Text without code and comments.
    prose: String,
}

/// A fenced block or a comment.
struct Part {
    /// Line of its first line, counted from 1.
    line: usize,
    kind: Kind,
    text: String,
}

enum Kind {
    /// A block in this language, which may be empty.
    Block(String),
    Comment,
}

impl Page {
    fn parse(path: &str, text: &str) -> Self {
        let (mut parts, mut prose) = (Vec::new(), String::new());
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let (kind, rest, end) = if let Some(language) = line.trim_start().strip_prefix("```") {
                let first = language.split([' ', ',']).next().unwrap_or_default();
                (Kind::Block(first.to_owned()), "", "```")
            } else if let Some(rest) = line.strip_prefix("<!--") {
                (Kind::Comment, rest, "-->")
            } else {
                prose += line;
                prose.push('\n');
                continue;
            };
            // A comment may begin on the line of its mark.
            let mut text = String::new();
            let mut last = (!rest.is_empty()).then(|| rest.to_owned());
            loop {
                if let Some(line) = last {
                    if let Some(line) = line.trim_end().strip_suffix(end) {
                        text += line;
                        break;
                    }
                    text += &line;
                    text.push('\n');
                }
                let at = index + 1;
                let next = lines.next().unwrap_or_else(|| panic!("{path}:{at}: no end"));
                last = Some(next.1.to_owned());
            }
            parts.push(Part { line: index + 1, kind, text });
        }
        Self { path: path.to_owned(), parts, prose }
    }

    fn read(path: &str) -> Self {
        Self::parse(path, &fs::read_to_string(root().join(path)).unwrap())
    }

    /// The README and its like, and every page of the book, with those that the program writes.
    fn all() -> Vec<Self> {
        let place = Place::empty();
        place.shell("repoformer manual book --format markdown").done();
        let written = GENERATED
            .map(|name| Self::parse(&format!("docs/{name}"), &place.read(&format!("book/{name}"))));
        let names = ["", "docs/"].into_iter().flat_map(|folder| {
            let entries = fs::read_dir(root().join(folder)).unwrap();
            entries
                .map(move |entry| folder.to_owned() + entry.unwrap().file_name().to_str().unwrap())
        });
        let is_committed = |path: &String| !written.iter().any(|page: &Self| page.path == *path);
        let mut paths: Vec<String> =
            names.filter(|name| name.ends_with(".md")).filter(is_committed).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).chain(written).collect()
    }

    /// The script of all blocks; `None` where there is none.
    ///
    /// # Errors
    /// A block is neither run nor marked, or a comment is not known.
    fn script(&self) -> Result<Option<String>, String> {
        let (mut script, mut has_blocks, mut ends) = (String::new(), false, "0");
        for Part { line, kind, text } in &self.parts {
            let place = format!("{}:{line}", self.path);
            match kind {
                Kind::Block(language) if language == "sh" => {
                    has_blocks = true;
                    script += &format!("echo '== {place}' >&2\n");
                    script += &match std::mem::replace(&mut ends, "0") {
                        "0" => text.clone(),
                        code => format!(
                            "set +e\n(set -e\n{text}\n)\ntest $? = {code} || exit 9\nset -e\n"
                        ),
                    };
                }
                Kind::Block(language) if SHOWN.contains(&language.as_str()) => {}
                Kind::Block(language) => {
                    let reason = "is neither run (sh) nor marked as text";
                    return Err(format!("{place}: a block in '{language}' {reason}"));
                }
                Kind::Comment => match text.trim().split_once([':', '\n', ' ']) {
                    Some(("setup", lines)) => script += &format!("{lines}\n"),
                    Some(("ends", code)) => ends = code.trim(),
                    Some(("needs" | "generated", _)) => {}
                    _ => return Err(format!("{place}: unknown comment {text}")),
                },
            }
        }
        Ok(has_blocks.then_some(script))
    }

    /// Programs that the page needs, beside those that every machine has.
    fn needs(&self) -> impl Iterator<Item = &str> {
        let comments = self.parts.iter().filter(|part| matches!(part.kind, Kind::Comment));
        comments.filter_map(|part| part.text.trim().strip_prefix("needs:")).map(str::trim)
    }

    /// Targets of links and images.
    fn links(&self) -> impl Iterator<Item = &str> {
        self.prose.split("](").skip(1).map(|rest| rest.split([')', ' ']).next().unwrap_or_default())
    }

    /// Names of the headings, as mdBook and GitHub make them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.prose.lines().filter(|line| line.starts_with('#'));
        let mut seen = BTreeMap::new();
        headings
            .map(|line| {
                let text = line.trim_start_matches('#').trim().to_lowercase();
                let kept = text.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
                let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
                let count = seen.entry(name.clone()).or_insert(0);
                *count += 1;
                if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
            })
            .collect()
    }
}

/// A model that completes with a line of its own for each request, embeds texts by their letters, and gives the token that
/// it is forced to write a probability by the prompt.
fn model(Request { path, body, .. }: &Request) -> Answer {
    let mood =
        |text: &str| text.bytes().fold(7_u32, |mood, byte| mood.wrapping_mul(31) ^ u32::from(byte));
    if path.ends_with("/tokenize") {
        return ok(&json!({"tokens": [7]}));
    }
    if path.ends_with("/embeddings") {
        let texts = body["input"].as_array().unwrap();
        let count = |text: &Value, letter| text.as_str().unwrap().matches(letter).count() as f64;
        let vector =
            |text: &Value| ["a", "e", "i", "o", "s", "t"].map(|one| count(text, one) + 0.5);
        let embedding = |(index, text)| json!({"index": index, "embedding": vector(text)});
        let data: Vec<Value> = texts.iter().enumerate().map(embedding).collect();
        return ok(&json!({"data": data, "model": body["model"]}));
    }
    let mood = mood(&body.to_string());
    let choice = |index: u64| {
        // It goes on after the line end that prompts are sent without.
        let text = format!("\nx_{} = {index}", mood % 9);
        let token = if body.get("logit_bias").is_some() {
            json!({"id": 7, "token": "", "logprob": -0.75 - f64::from(mood % 1000) / 300.0})
        } else {
            json!({"id": 3, "token": text, "logprob": -f64::from(mood % 7) / 5.0})
        };
        let message = json!({"role": "assistant", "content": text});
        let logprobs = json!({"content": [token]});
        json!({"index": index, "text": text, "message": message, "finish_reason": "stop", "logprobs": logprobs})
    };
    let samples = body["n"].as_u64().unwrap_or(1);
    ok(&json!({"choices": (0..samples).map(choice).collect::<Vec<_>>()}))
}

/// What a page's script answers, in a folder of its own.
fn play(script: &str) -> Ran {
    let place = Place::empty();
    for (name, lines) in PROGRAMS {
        place.write(&format!("bin/{name}"), format!("#!/bin/sh\nset -eu\n{lines}\n"));
        make_executable(&place.path("bin").join(name));
    }
    fs::create_dir(place.path("work")).unwrap();
    let (url, _) = server(model);
    let mut script = script.to_owned();
    for at in SERVERS {
        script = script.replace(at, &url);
    }
    for (said, done) in SMALLER {
        script = script.replace(said, done);
    }
    let mut environment = vec![("SERVER", url.clone())];
    if script.contains("get-benchmarks.sh") {
        environment.push(("MIRROR", benchmarks::mirror(&place)));
        environment.push(("SUMS", place.path("sums").display().to_string()));
    }
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    place.write("script", script);
    let bin = place.path("bin").display().to_string();
    place.shell_with(&format!("PATH={bin}:$PATH; cd work; exec sh -eu ../script"), &environment)
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn is_there(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// What is wrong with a page; `None` also where it has no blocks, or cannot be run here.
fn problem(page: &Page) -> Option<String> {
    let script = match page.script() {
        Ok(script) => script?,
        Err(problem) => return Some(problem),
    };
    if let Some(missing) = page.needs().find(|program| !is_there(program)) {
        eprintln!("{}: not run: '{missing}' is missing", page.path);
        return None;
    }
    let begin = std::time::Instant::now();
    let ran = play(&script);
    eprintln!("{}: {:.1} s", page.path, begin.elapsed().as_secs_f64());
    if ran.code != Some(0) {
        let at = ran.stderr.lines().rev().find_map(|line| line.strip_prefix("== "));
        let (at, code) = (at.unwrap_or("setup"), ran.code);
        let told = ran.stderr.rsplit("\n== ").next().unwrap_or_default();
        let stdout: Vec<&str> = ran.stdout.lines().rev().take(5).collect();
        return Some(format!(
            "the block at {at} ended with {code:?}\n{told}\nstdout, from its end: {stdout:#?}"
        ));
    }
    (page.path == "README.md").then(|| demonstration(page, &ran.stdout)).flatten()
}

/// Where the README or *Getting started* shows the demonstration with other numbers. Times are let be.
fn demonstration(readme: &Page, stdout: &str) -> Option<String> {
    let rows = |text: &str| -> Vec<Vec<String>> {
        let rows = text.lines().filter(|row| row.starts_with("line "));
        rows.map(|row| row.split_whitespace().map(str::to_owned).collect()).take(4).collect()
    };
    let printed = rows(stdout);
    let started = Page::read("docs/getting-started.md");
    let shown: Vec<Vec<String>> = started.parts.iter().flat_map(|part| rows(&part.text)).collect();
    assert_eq!((printed.len(), shown.len()), (4, 4), "{stdout}");
    let untimed = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
        rows.iter().map(|row| row[..row.len() - 1].to_vec()).collect()
    };
    // Tasks, mode, n, metric, EM and its range, ES and its range, %RAG, tokens.
    let scores: Vec<String> =
        printed.iter().map(|row| format!("{} / {}", row[4], row[7])).collect();
    let row = readme.prose.lines().find(|line| line.starts_with("| bundled tasks: lines "));
    let cells: Vec<&str> = row.into_iter().flat_map(|row| row.split('|').skip(3)).take(4).collect();
    let is_shown = cells.iter().map(|cell| cell.trim()).eq(scores.iter().map(String::as_str));
    (untimed(&printed) != untimed(&shown) || !is_shown)
        .then(|| format!("the demonstration printed {printed:?}, not {shown:?} and {cells:?}"))
}

/// `BOOK=scores cargo test --test it -- book` runs only the pages whose path contains this.
#[test]
fn blocks_run_as_they_stand() {
    let only = std::env::var("BOOK").unwrap_or_default();
    let pages: Vec<Page> =
        Page::all().into_iter().filter(|page| page.path.contains(&only)).collect();
    let problems: Vec<String> = pages.par_iter().filter_map(problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn what_is_done_with_less_or_elsewhere_stands_in_a_page() {
    let scripts: String = Page::all().iter().filter_map(|page| page.script().unwrap()).collect();
    let said = SMALLER.iter().map(|(said, _)| *said).chain(SERVERS);
    for said in said.chain(PROGRAMS.iter().map(|(name, _)| *name)) {
        assert!(scripts.contains(said), "no page says '{said}'");
    }
}

#[test]
fn links_lead_somewhere_and_pages_stay_in_the_book() {
    let pages = Page::all();
    let by_path: BTreeMap<&str, &Page> =
        pages.iter().map(|page| (page.path.as_str(), page)).collect();
    let mut problems = Vec::new();
    for page in &pages {
        for link in page.links() {
            if link.starts_with("https://") || link.starts_with("http://") {
                continue;
            }
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = Path::new(&page.path).parent().unwrap();
            let path = match target {
                "" => page.path.clone(),
                target => folder.join(target).display().to_string(),
            };
            let is_book = page.path.starts_with("docs/");
            let problem = if is_book && path.contains("..") {
                "leads out of the book"
            } else if !root().join(&path).exists() && !by_path.contains_key(path.as_str()) {
                "leads nowhere"
            } else if !anchor.is_empty()
                && !by_path.get(path.as_str()).is_some_and(|page| page.anchors().contains(anchor))
            {
                "names no heading"
            } else {
                continue;
            };
            problems.push(format!("{}: {link} {problem}", page.path));
        }
    }
    let summary = by_path["docs/SUMMARY.md"];
    for page in pages.iter().filter(|page| page.path.starts_with("docs/")) {
        let name = page.path.strip_prefix("docs/").unwrap_or_default();
        let count = summary.links().filter(|link| *link == name).count();
        if count != usize::from(name != "SUMMARY.md") {
            problems.push(format!("{name} stands {count} times in SUMMARY.md"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Comments and documents elsewhere name pages by their paths.
#[test]
fn pages_that_other_files_name_exist() {
    let folders = ["src", "configs", "benches", "examples", "scripts", "data", "tests", ".ci"];
    let mut files = Vec::new();
    let mut open: Vec<PathBuf> = folders.map(|name| root().join(name)).to_vec();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("data/cache") || path.ends_with("data/benchmarks") => {}
                true => open.push(path),
                false => files.push(path),
            }
        }
    }
    let mut problems = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for rest in text.split("docs/").skip(1) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            let name = rest.split(|c| !is_name(c)).next().unwrap_or_default();
            let name = name.trim_end_matches('.');
            let is_page =
                [".md", ".py", ".toml", ".svg", ".png"].iter().any(|end| name.ends_with(end));
            // Sphinx's settings, an example of what a repository holds.
            if is_page && name != "conf.py" && !root().join("docs").join(name).exists() {
                problems.push(format!("{}: docs/{name} does not exist", file.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The last cell of a row names the tests of a promise.
#[test]
fn tests_that_promises_name_exist() {
    let is_name = |word: &&str| {
        word.contains('_')
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let mut named = BTreeSet::new();
    for page in ["SECURITY.md", "docs/sandbox.md", "docs/security.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for row in text.lines().filter(|line| line.starts_with('|')) {
            let cell = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
            named.extend(cell.split('`').skip(1).step_by(2).filter(is_name).map(str::to_owned));
        }
    }
    assert!(named.len() > 50, "{named:?}");
    for folder in ["tests/it", "crates", "src"] {
        for entry in walkdir::WalkDir::new(root().join(folder)).into_iter().flatten() {
            if entry.path().extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(entry.path()).unwrap();
                named.retain(|name| {
                    !text.contains(&format!("fn {name}("))
                        && !text.contains(&format!("mod {name};"))
                });
            }
        }
    }
    assert!(named.is_empty(), "no such tests: {named:?}");
}

#[test]
fn the_readme_is_short() {
    let length = fs::metadata(root().join("README.md")).unwrap().len();
    assert!(length < 6 * 1024, "{length} bytes");
}

#[test]
fn a_block_must_be_run_or_marked() {
    let page = |text: &str| Page::parse("page.md", text);
    let script = |text: &str| page(text).script();
    assert_eq!(script("a\n```text\nb\n```\n"), Ok(None));
    let shown = script("<!-- setup: x=1 -->\n```sh\necho $x\n```\n").unwrap().unwrap();
    assert_eq!(shown, " x=1\necho '== page.md:2' >&2\necho $x\n");
    for text in ["```\nb\n```\n", "```bash\nb\n```\n", "<!-- steup: x -->\n"] {
        assert!(script(text).is_err(), "{text}");
    }
    // A failing block fails its page, and so does one that does not fail as it should.
    for (text, code) in [
        ("```sh\nfalse\ntrue\n```\n", Some(1)),
        ("<!-- ends: 3 -->\n```sh\n(exit 3)\ntrue\n```\n", Some(0)),
        ("<!-- ends: 3 -->\n```sh\ntrue\n```\n", Some(9)),
        ("```sh\necho $unset\n```\n", Some(2)),
    ] {
        assert_eq!(play(&script(text).unwrap().unwrap()).code, code, "{text}");
    }
    let anchors = page("# A `b` c!\n```text\n# d\n```\n## A `b` c\n").anchors();
    assert_eq!(anchors.into_iter().collect::<Vec<_>>(), ["a-b-c", "a-b-c-1"]);
}
