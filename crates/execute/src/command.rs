//! Shell commands with placeholders, as given by the user.

use std::path::{Path, PathBuf};

use memchr::memmem;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::shell::{is_harmless, quote};

/// Names of the placeholders.
const PLACES: [&str; 4] = ["tests", "repository", "task_id", "path"];

/// Shell command in which `{tests}`, `{repository}`, `{task_id}` and `{path}` are replaced, each value as one word. Other braces stay
/// unchanged if they contain no placeholder name: `${HOME}` and `{a,b}` belong to the shell; `{{` and `}}` stand for one brace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Place(&'static str),
}

/// Values of the placeholders.
#[derive(Debug, Clone, Copy, Default)]
pub struct Values<'a> {
    /// Tests of the task, as the test runner names them.
    pub tests: &'a [String],
    /// Name of the repository.
    pub repository: &'a str,
    /// Id of the task.
    pub task_id: &'a str,
    /// Path of the hole's file in the repository.
    pub path: &'a str,
}

impl Values<'_> {
    /// Checks that the command cannot mistake a value for an option. The repository's name is always checked, because set-up commands
    /// contain it too.
    ///
    /// # Errors
    /// A value begins with a hyphen, or with `@` as the name of a file of options; the error names it.
    pub(crate) fn check_options(&self, template: &Template) -> Result<(), String> {
        let tests = self.tests.iter().map(|test| ("tests", test.as_str()));
        let others = [("task_id", self.task_id), ("path", self.path)];
        let of_template = tests.chain(others).filter(|(place, _)| template.names(place));
        let mut all = of_template.chain([("repository", self.repository)]);
        match all.find(|(_, value)| value.starts_with(['-', '@'])) {
            Some((place, value)) => Err(format!(
                "its {{{place}}} {value:?} begins with a hyphen or @, so a command could take it for an option"
            )),
            None => Ok(()),
        }
    }
}

/// Absolute paths in a template. Paths in values do not count, because the user did not write them: the tests' names come from the author
/// of the repository.
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

/// Text around a placeholder in a shell command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    /// Plain text, in which a quoted word is one word, whatever it contains.
    Plain,
    /// Quotes, or a preceding backslash.
    Quotes,
    /// Text before the placeholder that the shell reads by different rules, and that may extend to the placeholder.
    OtherRules,
}

/// Shell syntax in which a placeholder can be nested.
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
    /// Returns the index of the first placeholder at which no value may be inserted, and its surroundings. `places` are ascending positions
    /// of letters in `text` that stand for the placeholders.
    fn find_refused(text: &str, places: &[usize]) -> Option<(usize, Self)> {
        let mut places = places.iter().copied().enumerate().peekable();
        let mut contexts = Vec::new();
        let mut is_word_start = true;
        let mut patterns = None;
        let mut at = 0;
        while let Some(sign) = text[at..].chars().next() {
            let rest = &text[at..];
            let begins = |start: &str| rest.starts_with(start);
            let is_word = |word: &str| {
                let behind = rest.strip_prefix(word).filter(|_| is_word_start);
                behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(BLANKS))
            };
            let mut length = sign.len_utf8();
            let context = contexts.last().copied();
            let is_double = context == Some(Context::Double);
            let mut surroundings = match context {
                Some(Context::Double) => Self::Quotes,
                Some(Context::Parameter) => Self::OtherRules,
                Some(Context::Parentheses | Context::Substitution) | None => Self::Plain,
            };
            let mut are_other_rules = begins("`")
                || begins("$((")
                || begins("$[")
                || !is_double && (begins("$'") || begins("(("))
                || is_word("[["); // what it compares may be computed
            if is_word("case") {
                // Only a complete shell parser knows where the patterns of `case` end.
                patterns = patterns.or_else(|| Some(at + position_of_word(rest, "in")));
            }
            if !is_double && begins("\\\n") {
                at += 2;
                continue;
            }
            let was_word_start = std::mem::replace(
                &mut is_word_start,
                !is_double && (BLANKS.contains(&sign) || ";&|(<>".contains(sign)),
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
                // Whether quotes count inside `${}` depends on the surroundings.
                (Some(Context::Parameter), '\'' | '"' | '\\') => are_other_rules = true,
                (_, '\\') => {
                    length += rest[1..].chars().next().map_or(0, char::len_utf8);
                    surroundings = Self::Quotes;
                }
                (Some(Context::Double | Context::Parameter), _) => {}
                (_, '\'') => {
                    length = rest[1..].find('\'').map_or(rest.len(), |inner| inner + 2);
                    surroundings = Self::Quotes;
                }
                (_, '"') => contexts.push(Context::Double),
                (_, '(') => contexts.push(Context::Parentheses),
                (Some(Context::Parentheses | Context::Substitution), ')') => {
                    is_word_start = contexts.pop() == Some(Context::Parentheses);
                }
                // A pattern of `case` ends with a parenthesis that was not opened.
                (_, ')') => are_other_rules = true,
                // `<<<` is followed by a word.
                (_, '<') if begins("<<<") => length = 3,
                (_, '<') if begins("<<") => are_other_rules = true,
                // Quotes have no meaning in a comment.
                (_, '#') if was_word_start => length = rest.find('\n').unwrap_or(rest.len()),
                _ => {}
            }
            if are_other_rules {
                return places.next().map(|(index, _)| (index, Self::OtherRules));
            }
            at += length;
            while let Some((index, place)) = places.next_if(|(_, place)| *place < at) {
                if patterns.is_some_and(|patterns| patterns < place) {
                    surroundings = Self::OtherRules;
                }
                if surroundings != Self::Plain {
                    return Some((index, surroundings));
                }
            }
        }
        None
    }

    /// Returns a description of the place and a hint, if the shell would not read a value there as one word.
    fn refusal(self) -> Option<[&'static str; 2]> {
        match self {
            Self::Plain => None,
            Self::Quotes => {
                Some(["within quotes or after a backslash", "move it outside the quotes"])
            }
            Self::OtherRules => Some([
                "after a here-document, backticks, `$'`, `((`, `[[`, `case` or quotes in `${}`",
                "move it before these, or put the command in a script",
            ]),
        }
    }
}

/// White space of the shell, which treats any other kind as letters.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// Returns the position of a word, or the length of the text if it does not contain the word.
fn position_of_word(text: &str, word: &str) -> usize {
    let before =
        text.split_inclusive(BLANKS).take_while(|part| part.trim_end_matches(BLANKS) != word);
    before.map(str::len).sum()
}

/// Placeholder for a value that the user did not write.
const VALUE: char = '\0';

impl Template {
    /// Returns the absolute paths that the template contains for a repository.
    pub fn named_paths(&self, repository: &str) -> NamedPaths {
        let words = |repository: Option<&str>| -> String {
            let value = VALUE.to_string();
            let of = |part: &TemplatePart| match (part, repository) {
                (TemplatePart::Text(text), _) => text.clone(),
                (TemplatePart::Place("repository"), Some(name)) => name.to_owned(),
                (TemplatePart::Place(_), _) => value.clone(),
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
    /// assert_eq!(
    ///     template.fill(values),
    ///     "_rf1='t.py::test_b[x y]'; pytest -q t.py::test_a \"$_rf1\" && echo ${HOME}",
    /// );
    /// assert!(Template::parse("test-cmd", "pytest {test}").is_err());
    /// # Ok::<(), repoformer_store::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// A name in braces is unknown or within quotes, where no value can be inserted, or the command is empty, for which the shell would
    /// report success.
    pub fn parse(name: &'static str, text: &str) -> Result<Self> {
        if text.trim().is_empty() {
            return Err(Error::parameter(name, "is empty; pass a command, or omit this setting"));
        }
        let mut parts = Vec::new();
        let mut plain = String::new();
        // The text with a letter for each placeholder, because a value is one word.
        let (mut words, mut places) = (String::new(), Vec::new());
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
                            "unknown placeholder {{{inside}}}; known: {known} (write a literal brace twice)"
                        );
                        return Err(Error::parameter(name, reason));
                    };
                    words.push_str(&plain);
                    places.push((words.len(), *place));
                    words.push('x');
                    parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
                    parts.push(TemplatePart::Place(place));
                    rest = after;
                }
                None => {
                    plain.push_str(&from[..1]);
                    rest = &from[1..];
                }
            }
        }
        plain.push_str(rest);
        words.push_str(&plain);
        parts.push(TemplatePart::Text(plain));
        let positions: Vec<usize> = places.iter().map(|(position, _)| *position).collect();
        let refused = Surroundings::find_refused(&words, &positions);
        match refused.and_then(|(index, around)| Some((places[index].1, around.refusal()?))) {
            Some((place, [stands, way_out])) => {
                let reason = format!(
                    "{{{place}}} is {stands}, so the shell would not read its value as one word; {way_out}"
                );
                Err(Error::parameter(name, reason))
            }
            None => Ok(Self { parts }),
        }
    }

    /// Returns the command with these values. A value that the shell could read as more than a word is assigned to a variable at the
    /// beginning of the command, and its placeholder is replaced by the variable. Whatever quotes surround it, the shell then executes no
    /// part of the value, unless the command itself evaluates its words (`eval`, `let`, `sh -c`).
    pub fn fill(&self, values: Values<'_>) -> String {
        let (mut variables, mut command, mut count) = (String::new(), String::new(), 0);
        let mut fill = |value: &str| {
            if value.chars().all(|c| is_harmless(c) || "[]".contains(c)) {
                return quote(value);
            }
            count += 1;
            variables += &format!("_rf{count}={}; ", quote(value));
            format!("\"$_rf{count}\"")
        };
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => command += text,
                TemplatePart::Place("tests") => {
                    let tests: Vec<String> = values.tests.iter().map(|test| fill(test)).collect();
                    command += &tests.join(" ");
                }
                TemplatePart::Place("repository") => command += &fill(values.repository),
                TemplatePart::Place("task_id") => command += &fill(values.task_id),
                TemplatePart::Place(_) => command += &fill(values.path),
            }
        }
        variables + &command
    }

    /// Returns true if the template contains a placeholder.
    pub fn names(&self, place: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Place(name) if *name == place))
    }
}

/// Prints the template as the user wrote it.
impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            TemplatePart::Text(text) => f.write_str(text),
            TemplatePart::Place(place) => write!(f, "{{{place}}}"),
        })
    }
}

/// Maximum number of bytes that are read of a repository's settings.
const LONGEST_SETTINGS: u64 = 1 << 20;

/// Returns the default test command of a repository: pytest if it is configured, otherwise Python's own runner; `None` if there is no
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
        assert_eq!(
            fill("{tests}|{repository}|{task_id}|{path}"),
            r#"_rf1='it'\''s'; _rf2='a b'; "$_rf1" ''|r|"$_rf2"|x/y.py"#
        );
        assert_eq!(fill("${path} {{path}} }"), "${path} {path} }");
        for empty in ["", " \n"] {
            let error = Template::parse("test-cmd", empty).unwrap_err().to_string();
            assert_eq!(error, "test-cmd: is empty; pass a command, or omit this setting");
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
            "(true)# don't stop\necho '{path}'",
            "f()# don't\n{{ echo '{path}'; }}\nf",
            "true && \\\n# it's needed\necho '{path}'",
            "echo \"$(case a in a) printf '\"{path}\"';; esac)\"",
            "echo a\u{a0}# don't {path}",
            "(( {path} ))",
            "[[ {path} -eq 1 ]]",
            "echo $[ {path} ]",
        ] {
            let error = Template::parse("setup-cmd", within).unwrap_err().to_string();
            assert!(error.contains("would not read its value as one word"), "{within}: {error}");
        }
        let remark = Template::parse("setup-cmd", "true # {path}\necho {path}").unwrap();
        let filled = remark.fill(Values { path: "a\ntouch x", ..Values::default() });
        assert_eq!(
            filled,
            "_rf1='a\ntouch x'; _rf2='a\ntouch x'; true # \"$_rf1\"\necho \"$_rf2\""
        );
        for outside in [
            "sh -c 'a \" b' {path}",
            "PYTHONPATH=\"$(pwd)/${A}:$B\" pytest {tests}",
            "(cd a && echo \"$(cat {path})\"; x) && cat <<<{path} # done",
            "echo a#b {tests}",
            "true # it's\necho {tests}",
            "echo \"it's\" {tests}",
            "python3 -m unittest -k case {tests}",
            "echo \\\\{path}",
            "echo \\\" {path}",
        ] {
            Template::parse("test-cmd", outside).unwrap();
        }
    }

    #[test]
    fn no_value_becomes_an_option() {
        let template = Template::parse("test-cmd", "run {tests} {path}").unwrap();
        let tests = ["a".to_owned(), "-p".to_owned()];
        let fine = Values { tests: &tests[..1], repository: "r", task_id: "-1", path: "a/-b.py" };
        assert_eq!(fine.check_options(&template), Ok(()), "the command has no {{task_id}}");
        for (wrong, what) in [
            (Values { tests: &tests, ..fine }, "its {tests} \"-p\" begins"),
            (Values { tests: &["@x".to_owned()], ..fine }, "its {tests} \"@x\" begins"),
            (Values { path: "-b/a.py", ..fine }, "its {path} \"-b/a.py\" begins"),
            (Values { repository: "-Itouch x", ..fine }, "its {repository} \"-Itouch x\" begins"),
        ] {
            let error = wrong.check_options(&template).unwrap_err();
            assert!(error.starts_with(what), "{error}");
        }
    }

    /// Even in a placeholder at a forbidden position, and with any surroundings.
    #[test]
    fn no_value_becomes_a_command() {
        let dir = tempfile::tempdir().unwrap();
        let surroundings = [
            ["", ""],
            ["'", "'"],
            ["\"", "\""],
            ["`echo ", "`"],
            ["$(echo ", ")"],
            ["a # '", "'"],
            ["a <<X\n", "\nX"],
            ["echo \\", ""],
            ["echo $((", "))"],
            ["echo ${A:-", "}"],
            ["case a in a) echo '", "';; esac"],
            ["echo \"$(echo '", "')\""],
            ["echo $'", "'"],
        ];
        for [before, after] in surroundings {
            for value in
                ["$(touch x)", "`touch x`", "'; touch x; '", "\"; touch x; \"", "\ntouch x\n"]
            {
                let before = TemplatePart::Text(format!("echo {before}"));
                let parts =
                    vec![before, TemplatePart::Place("path"), TemplatePart::Text(after.into())];
                let template = Template { parts };
                let command = template.fill(Values { path: value, ..Values::default() });
                let mut shell = std::process::Command::new("sh");
                shell.args(["-c", &command]).current_dir(dir.path()).output().unwrap();
                assert!(!dir.path().join("x").exists(), "{command}");
            }
        }
    }

    #[test]
    fn a_repository_tells_its_runner() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(default_test_command(dir.path()), None);
        std::fs::write(dir.path().join("a.py"), "").unwrap();
        assert!(default_test_command(dir.path()).unwrap().contains("unittest"));
        // Neither a pipe without a writer nor an endless device is read.
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("setup.cfg")).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("tox.ini")).unwrap();
        assert!(default_test_command(dir.path()).unwrap().contains("unittest"));
        std::fs::write(dir.path().join("pyproject.toml"), "[tool.pytest.ini_options]\n").unwrap();
        assert!(default_test_command(dir.path()).unwrap().contains("pytest"));
    }
}
