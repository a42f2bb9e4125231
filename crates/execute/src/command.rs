//! Shell commands given by the user, with placeholders.

use std::path::{Path, PathBuf};

use memchr::memmem;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;

/// Names of the placeholders.
const PLACES: [&str; 4] = ["tests", "repository", "task_id", "path"];

/// A shell command in which `{tests}`, `{repository}`, `{task_id}` and `{path}` are replaced, quoted for the shell. Other
/// braces stay as they are if they contain no name: `${HOME}` and `{a,b}` belong to the shell; `{{` and `}}` stand for one
/// brace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(&'static str),
    /// In a comment, which a line feed in the value must not end.
    Remark(&'static str),
}

/// Values of the placeholders.
#[derive(Debug, Clone, Copy, Default)]
pub struct Values<'a> {
    /// Tests of the task, by the names that the test runner knows.
    pub tests: &'a [String],
    /// Name of the repository.
    pub repository: &'a str,
    /// The task's id.
    pub task_id: &'a str,
    /// Path of the hole's file in the repository.
    pub path: &'a str,
}

/// Absolute paths that a template names. Values do not count, since the user did not write them: the author of a repository
/// names its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedPaths {
    /// Paths without a placeholder.
    pub paths: Vec<PathBuf>,
    /// Name of the repository.
    pub repository: String,
    /// Paths that contain `{repository}`, filled in with this name.
    pub with_repository: Vec<PathBuf>,
}

/// Returns the absolute paths among the words of a command or a variable.
pub(crate) fn paths_in(text: &str) -> Vec<PathBuf> {
    let between = |c: char| c.is_whitespace() || "'\":;=()<>|&,".contains(c);
    let words = text.split(between).filter(|word| !word.contains(VALUE)).map(PathBuf::from);
    words.filter(|path| path.is_absolute()).collect()
}

/// Text around a place in a shell command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    /// A quoted word is one word, whatever is in it.
    Plain,
    /// Quotes, or a backslash.
    Quotes,
    Comment,
    /// Text that the shell reads by other rules begins before the place, and may reach to it.
    OtherRules,
}

/// Syntax of the shell that a place can be nested in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    /// `(…)`
    Parentheses,
    /// `$(…)`
    Substitution,
    /// `"…"`
    Double,
    /// `${…}`
    Parameter,
}

impl Surroundings {
    /// Returns what surrounds the place behind a text.
    fn behind(text: &str) -> Self {
        let mut contexts = Vec::new();
        let mut rest = text;
        let mut is_word_start = true;
        while let Some(sign) = rest.chars().next() {
            let begins = |start: &str| rest.starts_with(start);
            let mut length = sign.len_utf8();
            let context = contexts.last().copied();
            let is_double = context == Some(Context::Double);
            if begins("`") || begins("$((") || !is_double && begins("$'") {
                return Self::OtherRules;
            }
            let was_word_start = std::mem::replace(
                &mut is_word_start,
                !is_double && (sign.is_whitespace() || ";&|(".contains(sign)),
            );
            match (context, sign) {
                (_, '$') if begins("$(") => {
                    contexts.push(Context::Substitution);
                    (length, is_word_start) = (2, true);
                }
                (_, '$') if begins("${") => {
                    contexts.push(Context::Parameter);
                    length = 2;
                }
                (Some(Context::Parameter), '}') | (Some(Context::Double), '"') => {
                    contexts.pop();
                }
                // Whether quotes count there depends on what is around it.
                (Some(Context::Parameter), '\'' | '"' | '\\') => return Self::OtherRules,
                (_, '\\') => match rest[1..].chars().next() {
                    Some(next) => length += next.len_utf8(),
                    None => return Self::Quotes,
                },
                (Some(Context::Double | Context::Parameter), _) => {}
                (_, '\'') => match rest[1..].find('\'') {
                    Some(inner) => length = inner + 2,
                    None => return Self::Quotes,
                },
                (_, '"') => contexts.push(Context::Double),
                (_, '(') => contexts.push(Context::Parentheses),
                (Some(Context::Parentheses | Context::Substitution), ')') => {
                    contexts.pop();
                }
                // Patterns of `case` end with a parenthesis that nothing opened.
                (_, ')') => return Self::OtherRules,
                // `<<<` is followed by a word.
                (_, '<') if begins("<<<") => length = 3,
                (_, '<') if begins("<<") => return Self::OtherRules,
                (_, '#') if was_word_start => match rest.find('\n') {
                    Some(end) => length = end,
                    None => return Self::Comment,
                },
                _ => {}
            }
            rest = &rest[length..];
        }
        match contexts.last() {
            Some(Context::Double) => Self::Quotes,
            Some(Context::Parameter) => Self::OtherRules,
            Some(Context::Parentheses | Context::Substitution) | None => Self::Plain,
        }
    }

    /// Says where the place is, and what to do, if a value could break out of its quotes there.
    fn danger(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Plain | Self::Comment => None,
            Self::Quotes => {
                Some(["within quotes or behind a backslash", "write it outside of quotes"])
            }
            Self::OtherRules => Some([
                "behind a here-document, backticks, `$'`, `$((`, quotes in `${}` or a pattern of `case`",
                "write it before these, or put the command into a script",
            ]),
        }
    }
}

/// Stands for a value that the user did not write.
const VALUE: char = '\0';

impl Template {
    /// Returns the absolute paths that the template itself names for a repository.
    pub fn named(&self, repository: &str) -> NamedPaths {
        let words = |repository: Option<&str>| -> String {
            let value = VALUE.to_string();
            let of = |part: &Part| match (part, repository) {
                (Part::Text(text), _) => text.clone(),
                (Part::Place("repository") | Part::Remark("repository"), Some(name)) => {
                    name.to_owned()
                }
                (Part::Place(_) | Part::Remark(_), _) => value.clone(),
            };
            self.parts.iter().map(of).collect()
        };
        NamedPaths {
            paths: paths_in(&words(None)),
            repository: repository.to_owned(),
            with_repository: paths_in(&words(Some(repository))),
        }
    }

    /// Parses a template; `name` is the parameter's name in errors.
    ///
    /// ```
    /// use repoformer_execute::{Template, Values};
    /// let template = Template::parse("test-cmd", "pytest -q {tests} && echo ${HOME}")?;
    /// let tests = ["t.py::test_a".to_owned(), "t.py::test_b[x y]".to_owned()];
    /// let values = Values { tests: &tests, ..Values::default() };
    /// assert_eq!(template.fill(values), "pytest -q t.py::test_a 't.py::test_b[x y]' && echo ${HOME}");
    /// assert!(Template::parse("test-cmd", "pytest {test}").is_err());
    /// # Ok::<(), repoformer_store::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// A name in braces is unknown or stands within quotes, from which a value could break out, or there is no command: the shell
    /// would report success.
    pub fn parse(name: &'static str, text: &str) -> Result<Self> {
        if text.trim().is_empty() {
            return Err(Error::parameter(name, "is empty; name a command, or leave it out"));
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut until_here = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain.push_str(&from[..1]);
                rest = after;
                continue;
            }
            let named = from[1..].split_once('}').filter(|(inside, _)| {
                let is_name = |c: char| c.is_ascii_alphabetic() || c == '_';
                from.starts_with('{') && !inside.is_empty() && inside.chars().all(is_name)
            });
            match named.filter(|_| !plain.ends_with('$')) {
                Some((inside, after)) => {
                    let Some(place) = PLACES.iter().find(|place| **place == inside) else {
                        let known = PLACES.map(|place| format!("{{{place}}}")).join(", ");
                        let reason = format!(
                            "unknown placeholder {{{inside}}}; known: {known} (a literal brace is written twice)"
                        );
                        return Err(Error::parameter(name, reason));
                    };
                    until_here.push_str(&plain);
                    let surroundings = Surroundings::behind(&until_here);
                    if let Some([place, way_out]) = surroundings.danger() {
                        let reason = format!(
                            "{{{inside}}} stands {place}, so that the shell could run parts of its value; {way_out}: the value is \
                             quoted for the shell"
                        );
                        return Err(Error::parameter(name, reason));
                    }
                    until_here.push('x'); // the value is a word
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(match surroundings {
                        Surroundings::Comment => Part::Remark(place),
                        _ => Part::Place(place),
                    });
                    rest = after;
                }
                None => {
                    plain.push_str(&from[..1]);
                    rest = &from[1..];
                }
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Self { parts })
    }

    /// Returns the command with these values.
    pub fn fill(&self, values: Values<'_>) -> String {
        let value = |place: &str| match place {
            "tests" => {
                let quoted: Vec<String> = values.tests.iter().map(|test| quote(test)).collect();
                quoted.join(" ")
            }
            "repository" => quote(values.repository),
            "task_id" => quote(values.task_id),
            _ => quote(values.path),
        };
        let fill = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Place(place) => value(place),
            Part::Remark(place) => value(place).replace('\n', " "),
        };
        self.parts.iter().map(fill).collect()
    }

    /// True if the template contains a placeholder.
    pub fn names(&self, place: &str) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Place(name) | Part::Remark(name) if *name == place))
    }
}

/// Prints the template as it was given.
impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Place(place) | Part::Remark(place) => write!(f, "{{{place}}}"),
        })
    }
}

/// Quotes a word for the shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Most bytes that are read of a repository's settings.
const LONGEST_SETTINGS: u64 = 1 << 20;

/// Returns the default test command of a repository: pytest if it is configured, otherwise Python's own runner; `None` without
/// Python code.
pub fn default_test_command(repository: &Path) -> Option<&'static str> {
    let says = |file: &str, word: &str| {
        let open = files::File::open_in_place(repository.join(file));
        let text = open
            .ok()
            .flatten()
            .and_then(|open| open.file.read_at_most(LONGEST_SETTINGS).ok().flatten());
        text.is_some_and(|text| memmem::find(&text, word.as_bytes()).is_some())
    };
    let is_there = |file: &&str| repository.join(file).is_file();
    let uses_pytest =
        ["pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"]
            .iter()
            .any(is_there)
            || says("pyproject.toml", "[tool.pytest")
            || says("setup.cfg", "[tool:pytest]")
            || says("tox.ini", "[pytest]");
    if uses_pytest {
        return Some("python3 -m pytest -q -x -p no:cacheprovider {tests}");
    }
    let is_python =
        ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"].iter().any(is_there);
    let holds_python = || {
        let mut entries = walkdir::WalkDir::new(repository).max_depth(3).into_iter().flatten();
        entries.any(|entry| entry.path().extension().is_some_and(|end| end == "py"))
    };
    (is_python || holds_python()).then_some("python3 -m unittest {tests}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shells_own_braces_stay() {
        let fill = |text: &str| {
            let values = Values {
                tests: &["it's".to_owned(), String::new()],
                repository: "r",
                task_id: "a b",
                path: "x/y.py",
            };
            Template::parse("test-cmd", text).unwrap().fill(values)
        };
        assert_eq!(
            fill("f() { echo ${x} {a,b} {} {1..3}; }"),
            "f() { echo ${x} {a,b} {} {1..3}; }"
        );
        assert_eq!(fill("{tests}|{repository}|{task_id}|{path}"), r"'it'\''s' ''|r|'a b'|x/y.py");
        assert_eq!(fill("${path} {{path}} }"), "${path} {path} }");
        for empty in ["", " \n"] {
            let error = Template::parse("test-cmd", empty).unwrap_err().to_string();
            assert_eq!(error, "test-cmd: is empty; name a command, or leave it out");
        }
        let error = Template::parse("setup-cmd", "x {Tests}").unwrap_err().to_string();
        assert!(
            error.contains("setup-cmd: unknown placeholder {Tests}") && error.contains("{task_id}"),
            "{error}"
        );
    }

    /// A folder's name such as `$(touch x)` must not be run.
    #[test]
    fn values_within_quotes_are_refused() {
        for within in [
            "touch \"{repository}\"",
            "touch 'a{repository}'",
            "sh -c \"x \\\" {path}\"",
            "echo \\{task_id}",
            "echo 'it'\\''s {tests}'",
            "cat <<X\n{repository}\nX",
            "cat <<'X' >a\n{repository}\nX",
            "true # it's\necho '{repository}'",
            "echo `echo {tests}`",
            "echo $'\\' {path}'",
            "echo $(( {path} ))",
            "echo \"$(echo '\"' ' {path} ')\"",
            "echo \"$(echo \"a {path}\")\"",
            "echo a\\ #'\n{path}\n'",
            "echo $(x)#'\n{path}\n'",
            "echo \"${A:-'\"' {path}",
            "case x in a) echo {path};; esac",
            "echo \"`echo '\"' {path}`\"",
        ] {
            let error = Template::parse("setup-cmd", within).unwrap_err().to_string();
            assert!(error.contains("could run parts of its value"), "{within}: {error}");
        }
        let remark = Template::parse("setup-cmd", "true # {path}\necho {path}").unwrap();
        let filled = remark.fill(Values { path: "a\ntouch x", ..Values::default() });
        assert_eq!(filled, "true # 'a touch x'\necho 'a\ntouch x'");
        for outside in [
            "sh -c 'a \" b' {path}",
            "PYTHONPATH=\"$(pwd)/${A}:$B\" pytest {tests}",
            "(cd a && echo \"$(cat {path})\"; x) && cat <<<{path} # done",
            "echo a#b {tests}",
            "true # it's\necho {tests}",
            "echo \"it's\" {tests}",
            "echo \\\\{path}",
            "echo \\\" {path}",
        ] {
            Template::parse("test-cmd", outside).unwrap();
        }
    }

    #[test]
    fn a_repository_tells_its_runner() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(default_test_command(dir.path()), None);
        std::fs::write(dir.path().join("a.py"), "").unwrap();
        assert!(default_test_command(dir.path()).unwrap().contains("unittest"));
        // Neither a pipe that nobody writes to nor a device without end is read.
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("setup.cfg")).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("tox.ini")).unwrap();
        assert!(default_test_command(dir.path()).unwrap().contains("unittest"));
        std::fs::write(dir.path().join("pyproject.toml"), "[tool.pytest.ini_options]\n").unwrap();
        assert!(default_test_command(dir.path()).unwrap().contains("pytest"));
    }
}
