//! Where settings come from and what is said, how, and where: flags, environment, configuration, profile; quiet and
//! verbose, colours, closed pipes.

use crate::support::{Place, Ran};

/// The line of a key in what `--show-settings` prints, and its source.
fn setting(ran: &Ran, key: &str) -> (String, String) {
    let line = ran.stdout.lines().find(|line| {
        line.trim_start_matches("# ")
            .starts_with(&format!("{key} ="))
    });
    let line = line.unwrap_or_else(|| panic!("no {key} in\n{}", ran.stdout));
    let (value, source) = line.rsplit_once(" # ").unwrap();
    (value.trim_end().to_owned(), source.to_owned())
}

fn shown(place: &Place, environment: &[(&str, &str)], args: &[&str]) -> Ran {
    let args = [&["window", "--show-settings"], args].concat();
    let output = place
        .command(&args)
        .envs(environment.iter().copied())
        .output();
    Ran::of(output.unwrap()).done()
}

#[test]
fn flags_beat_the_environment_which_beats_the_file_which_beats_the_profile() {
    let place = Place::empty();
    place.write(
        "c.toml",
        "profile = \"repocoder\"\ntop-k = 7\nmax-blocks = 6\nslice-size = 4\n",
    );
    let environment = [
        ("REPOFORMER_TOP_K", "8"),
        ("REPOFORMER_MAX_BLOCKS", "5"),
        ("REPOFORMER_MODE", "rg1, gt"),
    ];
    let ran = shown(
        &place,
        &environment,
        &["--config", "c.toml", "--top-k", "9"],
    );
    for (key, value, source) in [
        ("top-k", "top-k = 9", "command line"),
        (
            "max-blocks",
            "max-blocks = 5",
            "environment REPOFORMER_MAX_BLOCKS",
        ),
        (
            "mode",
            "mode = [\"rg1\", \"gt\"]",
            "environment REPOFORMER_MODE",
        ),
        ("slice-size", "slice-size = 4", "c.toml"),
        (
            "hole-guard",
            "hole-guard = \"reference\"",
            "profile repocoder",
        ),
        ("cache-dir", "cache-dir = \"data/cache\"", "default"),
        ("repos-dir", "# repos-dir =", "not set"),
    ] {
        assert_eq!(setting(&ran, key), (value.to_owned(), source.to_owned()));
    }
    let names: Vec<_> = std::fs::read_dir(place.path("")).unwrap().collect();
    assert_eq!(names.len(), 1, "only shown: nothing is written");
}

#[test]
fn what_is_shown_is_a_configuration_that_gives_the_same() {
    let place = Place::empty();
    let flags = [
        "--window-size",
        "10",
        "--mode",
        "rg1,gt",
        "--repos-dir",
        "a b\"c",
        "--tasks",
        "t.jsonl",
        "--hole-guard",
        "reference",
    ];
    let first = shown(&place, &[], &flags);
    place.write("again.toml", &first.stdout);
    let again = shown(&place, &[], &["--config", "again.toml"]);
    let values = |ran: &Ran| -> Vec<String> {
        let lines = ran.stdout.lines();
        lines
            .map(|line| line.rsplit_once(" # ").unwrap().0.trim_end().to_owned())
            .collect()
    };
    assert_eq!(values(&again), values(&first));
    assert_eq!(setting(&again, "window-size").1, "again.toml");
}

#[test]
fn a_profile_of_ones_own_lies_below_configs() {
    let place = Place::empty();
    place.write("configs/mine.toml", "top-k = 3\n");
    let ran = shown(&place, &[], &["--profile", "mine"]);
    assert_eq!(
        setting(&ran, "top-k"),
        ("top-k = 3".into(), "profile mine".into())
    );
    let environment = [("REPOFORMER_PROFILE", "mine")];
    assert_eq!(
        setting(&shown(&place, &environment, &[]), "top-k").0,
        "top-k = 3"
    );
    place
        .run(&["window", "--profile", "yours"])
        .failed()
        .says(&[
            "no profile \"yours\"",
            "hint: bundled: demo, repocoder",
            "configs/yours.toml",
        ]);
}

#[test]
fn a_configuration_alone_runs_an_experiment() {
    let place = Place::new();
    place.write(
        "c.toml",
        "repos-dir = \"repos\"\ntasks = \"tasks.jsonl\"\ncache-dir = \"kept/here\"\nmode = [\"none\", \"gt\"]\n",
    );
    let ran = place
        .run(&["run", "--config", "c.toml", "--format", "tsv"])
        .done();
    let modes: Vec<_> = ran
        .stdout
        .lines()
        .skip(1)
        .map(|line| line.split('\t').nth(1).unwrap())
        .collect();
    assert_eq!(modes, ["none", "gt"]);
    assert!(
        place
            .path("kept/here/window/repos/beta_ws20_slice2.bin")
            .exists()
    );
}

#[test]
fn mistakes_in_settings_name_their_place_and_the_nearest_right() {
    let place = Place::new();
    let cases = [
        (
            "windowsize = 10\n",
            vec![
                "c.toml: unknown key 'windowsize'",
                "hint: the nearest known key is 'window-size'",
            ],
        ),
        (
            "topk = 10\n",
            vec![
                "c.toml: unknown key 'topk'",
                "hint: the nearest known key is 'top-k'",
            ],
        ),
        (
            "top-k = true\n",
            vec!["c.toml: top-k must be a text or a whole number, not boolean"],
        ),
        (
            "top-k = [1, 2]\n",
            vec!["c.toml: top-k must be a text or a whole number, not array"],
        ),
        ("top-k = \n", vec!["c.toml: TOML parse error at line 1"]),
        ("top-k = \"many\"\n", vec!["top-k = \"many\" (c.toml)"]),
        (
            "window-size = 0\n",
            vec!["window-size: must lie between 1 and"],
        ),
        (
            "center = \"left\"\n",
            vec!["unknown center 'left'; known: half, step"],
        ),
        (
            "mode = \"rg2\"\n",
            vec!["unknown mode 'rg2'; known: none, rg1, rg-rg, gt, given"],
        ),
        (
            "ranker = \"bm26\"\n",
            vec!["'bm26'", "jaccard, bm25, bm25-by-line, "],
        ),
        (
            "benchmark = \"../x\"\n",
            vec!["'../x' cannot name", "--benchmark"],
        ),
        (
            "model = \"gpt\"\n",
            vec!["--model gpt is not the embedded one", "--endpoint"],
        ),
    ];
    for (text, says) in cases {
        place.write("c.toml", text);
        place
            .stage(&["run", "--config", "c.toml"])
            .failed()
            .says(&says);
    }
    place
        .stage(&["window", "--config", "no.toml"])
        .failed()
        .says(&["no.toml: cannot read this configuration"]);
    place
        .stage(&["window", "--windowsize", "3"])
        .failed()
        .says(&["--windowsize", "--window-size"]);
    let output = place
        .command(&place.args(&["window"]))
        .env("REPOFORMER_SLICE_SIZE", "half")
        .output();
    Ran::of(output.unwrap())
        .failed()
        .says(&["slice-size = \"half\" (environment REPOFORMER_SLICE_SIZE)"]);
}

#[test]
fn quiet_says_nothing_but_errors_and_verbose_names_each_file() {
    let place = Place::new();
    assert_eq!(place.stage(&["window", "-q"]).done().stderr, "");
    let verbose = place.stage(&["window", "-v"]).done();
    verbose.says(&[
        "(current)",
        "  cache/window/repos/alpha_ws20_slice2.bin\n",
        "  cache/window/tasks/gt/beta_ws20_slice2.bin\n",
    ]);
    place.write("repos/alpha/bad.py", b"\xff");
    let quiet = place.stage(&["window", "--quiet"]).partly();
    let lines: Vec<&str> = quiet
        .stderr
        .lines()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(lines, ["error", "hint"]);
}

#[test]
fn colours_are_for_terminals_or_where_asked_for() {
    let place = Place::new();
    let said = |args: &[&str], environment: &[(&str, &str)]| {
        let args = [&["vectorize"], args].concat();
        let args = place.args(&args);
        let mut command = place.command(&args);
        Ran::of(command.envs(environment.iter().copied()).output().unwrap())
            .failed()
            .stderr
    };
    let plain = said(&[], &[]);
    assert!(
        plain.starts_with("error: ") && !plain.contains('\x1b'),
        "{plain}"
    );
    let coloured = said(&["--color", "always"], &[]);
    assert!(
        coloured.starts_with("\x1b[1;31merror\x1b[0m: "),
        "{coloured}"
    );
    assert_eq!(
        said(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]),
        plain
    );
    assert_eq!(
        said(&[], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]),
        plain
    );
    assert!(said(&[], &[("CLICOLOR_FORCE", "1")]).contains('\x1b'));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let place = Place::empty();
    // More than a pipe holds, so that the program is still writing when its reader leaves.
    place.write("repos/r/a.py", crate::support::source("name", 20_000));
    place
        .run(&["window", "--repos-dir", "repos", "--cache-dir", "cache"])
        .done();
    let inspect = "inspect --format jsonl --context cache/window/repos/r_ws20_slice2.bin";
    let ran = place.shell(&format!("{{ $BIN {inspect}; echo $? >code; }} | head -n 1"));
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
    assert_eq!(place.read("code"), "0\n");
}

#[test]
fn the_work_goes_on_where_nobody_hears_of_it() {
    let place = Place::new();
    for (stage, stderr) in [("window", "/dev/full"), ("vectorize", "/dev/null")] {
        let line = format!("$BIN {} 2>{stderr}", place.args(&[stage]).join(" "));
        place.shell(&line).done();
    }
    let line = format!(
        "$BIN {} 2>&1 >/dev/null | true",
        place.args(&["run"]).join(" ")
    );
    place.shell(&line).done();
    place
        .shell(&format!("$BIN {} 2>&-", place.args(&["run"]).join(" ")))
        .done();
    place.stage(&["run"]).done().silent_on("written");
}

#[test]
fn standard_output_that_cannot_be_written_is_named() {
    let place = Place::new();
    place.all_stages(&[]);
    let line = format!("$BIN {} >/dev/full", place.args(&["eval"]).join(" "));
    place
        .shell(&line)
        .failed()
        .says(&["error: standard output: cannot write: No space left"]);
}

#[test]
fn usage_is_explained() {
    let place = Place::empty();
    place.run(&["widow"]).failed().says(&["'widow'", "window"]);
    let help = place.run(&["window", "--help"]).done().stdout;
    for flag in [
        "--repos-dir",
        "--tasks",
        "--cache-dir",
        "--show-settings",
        "--window-size",
    ] {
        assert!(help.contains(flag), "{flag}");
    }
    let version = place.run(&["--version"]).done().stdout;
    assert_eq!(
        version,
        format!("repoformer {}\n", env!("CARGO_PKG_VERSION"))
    );
}
