//! Transcripts: what the program prints, command by command. Each file below `tests/cmd` has lines
//! for `sh`, run one after the other in a fresh folder, and what each of them answers:
//!
//! ```text
//! # Prose: what must hold.
//! $ repoformer window --mode gt \
//! > --verbose
//! ? 2
//! a line of standard output
//! | $ a line of standard output that begins with one of these marks
//! ! a line of standard error
//! ```
//!
//! `> ` goes on with a command, and `? ` is the exit code where it is not 0. Within a line `[..]`
//! stands for any text, on a line of its own `...` for any lines, `[VERSION]` for the program's
//! version, and `[FOLDER]`, `[PROJECT]` and `[SERVER]` for the folder, the project's folder and the
//! URL below.
//!
//! The folder is the one that [`Place::new`] writes, with a `repoformer.toml` that names its
//! repositories, its tasks and the cache `cache`; in a file with the line `# folder: empty` it is
//! empty. The environment has nothing but the search path, `PROJECT`, this project's folder, and
//! `SERVER`, the URL of a server that gives each request the answer in the file `answer`: a status
//! (`200 OK`), and the text from the next line on.
//!
//! `SNAPSHOTS=overwrite cargo test --test it transcripts` accepts what has changed and fills in
//! what is new; `TRANSCRIPTS=inspect/` plays only the files whose paths contain this.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use snapbox::assert::Action;
use snapbox::data::DataFormat;
use snapbox::filter::NormalizeToExpected;
use snapbox::{Assert, Data, Redactions};

use crate::support::Place;
use crate::support::server::{answer, server};

const SETTINGS: &str = "repos-dir = \"repos\"\ntasks = \"tasks.jsonl\"\ncache-dir = \"cache\"\n";

/// A part of a transcript.
#[derive(Debug, PartialEq)]
enum Part {
    /// Comment lines, and the blank lines that follow them.
    Prose(String),
    /// A command, and the lines that it is expected to show.
    Step { command: String, expected: String },
}

/// Whether a line begins with one of the marks.
fn is_marked(line: &str) -> bool {
    let mut chars = line.trim_end_matches('\n').chars();
    chars.next().is_some_and(|c| "#$>?!|\\".contains(c)) && matches!(chars.next(), None | Some(' '))
}

fn parse(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in text.split_inclusive('\n') {
        let is_prose = is_marked(line) && line.starts_with('#');
        match parts.last_mut() {
            Some(Part::Prose(prose)) if is_prose || line == "\n" => prose.push_str(line),
            _ if is_prose => parts.push(Part::Prose(line.to_owned())),
            _ if line.starts_with("$ ") => {
                let command = line[2..].to_owned();
                parts.push(Part::Step { command, expected: String::new() });
            }
            Some(Part::Step { command, expected })
                if expected.is_empty() && line.starts_with("> ") =>
            {
                command.push_str(&line[2..]);
            }
            Some(Part::Step { expected, .. }) => expected.push_str(line),
            _ => panic!("neither a command nor prose: {line}"),
        }
    }
    // A blank line parts a step from what follows.
    let last = parts.len() - 1;
    for part in &mut parts[..last] {
        if let Part::Step { expected, .. } = part
            && (expected == "\n" || expected.ends_with("\n\n"))
        {
            expected.pop();
        }
    }
    parts
}

/// The lines that a command shows.
fn shown(place: &Place, command: &str, server: &str) -> String {
    let ran = place.shell_with(command, &[("SERVER", server)]);
    let mut shown = match ran.code {
        Some(0) => String::new(),
        code => format!("? {}\n", code.map_or("signal".to_owned(), |code| code.to_string())),
    };
    for line in ran.stdout.split_inclusive('\n') {
        shown += if is_marked(line) { "| " } else { "" };
        shown += line;
    }
    if !ran.stdout.is_empty() && !ran.stdout.ends_with('\n') {
        shown += "\n\\ no newline at the end\n";
    }
    for line in ran.stderr.lines() {
        shown += format!("! {line}").trim_end();
        shown.push('\n');
    }
    shown
}

/// The URL of a server that answers with the folder's file `answer`.
fn answering(place: &Place) -> String {
    let path = place.path("answer");
    let (url, _) = server(move |_| {
        let text = std::fs::read_to_string(&path).unwrap();
        let (status, text) = text.split_once('\n').unwrap();
        answer(status, "", text)
    });
    url
}

/// A transcript as it goes now; what its wildcards allow stays as it is written.
fn play(text: &str) -> String {
    let parts = parse(text);
    let place = if text.lines().any(|line| line == "# folder: empty") {
        Place::empty()
    } else {
        let place = Place::new();
        place.write("repoformer.toml", SETTINGS);
        place
    };
    let url = if text.contains("$SERVER") { answering(&place) } else { String::new() };
    let mut redactions = Redactions::new();
    let folder = place.path("").display().to_string();
    redactions.insert("[FOLDER]", folder.trim_end_matches('/').to_owned()).unwrap();
    redactions.insert("[PROJECT]", env!("CARGO_MANIFEST_DIR")).unwrap();
    redactions.insert("[SERVER]", url.clone()).unwrap();
    redactions.insert("[VERSION]", env!("CARGO_PKG_VERSION")).unwrap();
    let (mut played, mut is_open) = (String::new(), false);
    for part in parts {
        let is_apart = is_open || !played.is_empty() && matches!(part, Part::Prose(_));
        played += if is_apart { "\n" } else { "" };
        match part {
            Part::Prose(prose) => {
                played += &prose;
                is_open = false;
            }
            Part::Step { command, expected } => {
                let shown = NormalizeToExpected::new()
                    .redact_with(&redactions)
                    .normalize(Data::text(shown(&place, &command, &url)), &Data::text(expected));
                let shown = shown.render().unwrap();
                played += &format!("$ {}\n", command.trim_end().replace('\n', "\n> "));
                played += &shown;
                is_open = !shown.is_empty();
            }
        }
    }
    played
}

/// Plays a transcript and compares; the error shows the difference.
fn check(path: &Path, assert: &Assert) -> Result<(), String> {
    let expected = Data::read_from(path, Some(DataFormat::Text)).raw();
    let played = play(&expected.render().unwrap());
    assert
        .try_eq(Some(&"what is shown now"), Data::text(played), expected)
        .map_err(|e| e.to_string())
}

/// The transcripts below a folder whose paths contain a text.
fn transcripts(folder: &Path, filter: &str) -> Vec<PathBuf> {
    let files = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter();
    let paths = files.map(|file| file.unwrap().into_path());
    let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "console");
    let found: Vec<PathBuf> =
        paths.filter(is_one).filter(|path| path.to_string_lossy().contains(filter)).collect();
    assert!(!found.is_empty(), "{}: no transcript '{filter}'", folder.display());
    found
}

#[cfg(target_os = "linux")]
#[test]
fn every_transcript_is_what_the_program_prints() {
    let filter = std::env::var("TRANSCRIPTS").unwrap_or_default();
    let files = transcripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd"), &filter);
    let assert = Assert::new().action_env("SNAPSHOTS");
    let wrong: Vec<String> =
        files.par_iter().filter_map(|path| check(path, &assert).err()).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), files.len(), wrong.concat());
}

const SOUND: &str = "\
# Prose.

# folder: empty
$ echo 'a 1'; printf 'b\\n\\n$ c'; echo d >&2; exit 3
? 3
a [..]
b

| $ c
\\ no newline at the end
! d

$ touch x
$ cat > y <<END
> pwd; ls
> END
$ sh y
[FOLDER]
...

# The end.
$ true
";

fn verified(text: &str) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, text).unwrap();
    check(file.path(), &Assert::new().action(Action::Verify))
}

#[test]
fn a_wrong_transcript_fails_and_is_corrected() {
    verified(SOUND).unwrap();
    for (right, wrong) in [
        ("? 3\n", "? 4\n"),
        ("? 3\n", ""),
        ("! d\n", "! e\n"),
        ("! d\n", ""),
        ("! d\n", "d\n"),
        ("a [..]\n", "a [..]2\n"),
        ("a [..]\n", ""),
        ("b\n\n", "b\n"),
        ("\\ no newline at the end\n", ""),
        ("touch x\n", "touch x\nmore\n"),
        ("[FOLDER]\n...\n", "[FOLDER]\n"),
        ("true\n", "true\nmore\n"),
        ("true\n", "true\n? 1\n"),
    ] {
        let text = SOUND.replacen(right, wrong, 1);
        assert!(verified(&text).unwrap_err().contains("what is shown now"), "{text}");
        verified(&play(&text)).unwrap();
    }
    // Wildcards in what is right stay.
    assert_eq!(play(&SOUND.replace("! d", "! e")), SOUND);
}
#[test]
#[should_panic(expected = "no transcript")]
fn a_folder_without_transcripts_fails() {
    transcripts(tempfile::tempdir().unwrap().path(), "");
}

#[test]
#[should_panic(expected = "neither a command nor prose")]
fn output_of_no_command_fails() {
    parse("output\n");
}
