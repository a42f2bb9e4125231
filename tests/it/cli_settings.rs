//! Where settings come from and what is said, how, and where: flags, environment, configuration, profile; quiet and
//! verbose, colours, closed pipes.

use crate::support::{Place, Ran};

/// The line of a key in what `--show-settings` prints, and its source.
fn setting(ran: &Ran, key: &str) -> (String, String) {
    let line = ran
        .stdout
        .lines()
        .find(|line| line.trim_start_matches("# ").starts_with(&format!("{key} =")));
    let line = line.unwrap_or_else(|| panic!("no {key} in\n{}", ran.stdout));
    let (value, source) = line.rsplit_once(" # ").unwrap();
    (value.trim_end().to_owned(), source.to_owned())
}

fn shown(place: &Place, environment: &[(&str, &str)], args: &[&str]) -> Ran {
    let args = [&["window", "--show-settings"], args].concat();
    let output = place.command(&args).envs(environment.iter().copied()).output();
    Ran::of(output.unwrap()).done()
}

#[test]
fn flags_beat_the_environment_which_beats_the_file_which_beats_the_profile() {
    let place = Place::empty();
    place.write("c.toml", "profile = \"repocoder\"\ntop-k = 7\nmax-blocks = 6\nslice-size = 4\n");
    let environment =
        [("REPOFORMER_TOP_K", "8"), ("REPOFORMER_MAX_BLOCKS", "5"), ("REPOFORMER_MODE", "rg1, gt")];
    let ran = shown(&place, &environment, &["--config", "c.toml", "--top-k", "9"]);
    for (key, value, source) in [
        ("top-k", "top-k = 9", "command line"),
        ("max-blocks", "max-blocks = 5", "environment REPOFORMER_MAX_BLOCKS"),
        ("mode", "mode = [\"rg1\", \"gt\"]", "environment REPOFORMER_MODE"),
        ("slice-size", "slice-size = 4", "c.toml"),
        ("hole-guard", "hole-guard = \"reference\"", "profile repocoder"),
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
        lines.map(|line| line.rsplit_once(" # ").unwrap().0.trim_end().to_owned()).collect()
    };
    assert_eq!(values(&again), values(&first));
    assert_eq!(setting(&again, "window-size").1, "again.toml");
}

#[test]
fn a_profile_of_ones_own_lies_below_configs() {
    let place = Place::empty();
    place.write("configs/mine.toml", "top-k = 3\n");
    let ran = shown(&place, &[], &["--profile", "mine"]);
    assert_eq!(setting(&ran, "top-k"), ("top-k = 3".into(), "profile mine".into()));
    let environment = [("REPOFORMER_PROFILE", "mine")];
    assert_eq!(setting(&shown(&place, &environment, &[]), "top-k").0, "top-k = 3");
    place
        .run(&["window", "--profile", "yours"])
        .failed()
        .says(&["unknown profile 'yours'; known: demo, repocoder", "configs/yours.toml"]);
}

#[test]
fn a_configuration_alone_runs_an_experiment() {
    let place = Place::new();
    place.write(
        "c.toml",
        "repos-dir = \"repos\"\ntasks = \"tasks.jsonl\"\ncache-dir = \"kept/here\"\nmode = [\"none\", \"gt\"]\n",
    );
    let ran = place.run(&["run", "--config", "c.toml", "--format", "tsv"]).done();
    let modes: Vec<_> =
        ran.stdout.lines().skip(1).map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert_eq!(modes, ["none", "gt"]);
    assert!(place.path("kept/here/window/repos/beta_ws20_slice2.bin").exists());
}

#[test]
fn mistakes_in_settings_name_their_place_and_the_nearest_right() {
    let place = Place::new();
    let cases = [
        (
            "windowsize = 10\n",
            vec!["c.toml: unknown key 'windowsize'", "hint: did you mean 'window-size'?"],
        ),
        ("topk = 10\n", vec!["c.toml: unknown key 'topk'", "hint: did you mean 'top-k'?"]),
        ("top-k = true\n", vec!["c.toml: top-k must be a whole number, not boolean"]),
        ("top-k = [1, 2]\n", vec!["c.toml: top-k must be a whole number, not array"]),
        ("top-k = \n", vec!["c.toml: TOML parse error at line 1"]),
        (
            "top-k = \"many\"\n",
            vec!["invalid top-k 'many' (from c.toml): expected a whole number from 1 to"],
        ),
        (
            "window-size = 0\n",
            vec!["invalid window-size '0' (from c.toml): expected a whole number from 1 to"],
        ),
        ("center = \"left\"\n", vec!["unknown center 'left' (from c.toml); known: half, step"]),
        (
            "mode = \"rg2\"\n",
            vec![
                "unknown mode 'rg2' (from c.toml); known: none, rg1, rg-rg, gt, given",
                "hint: did you mean 'rg1'?",
            ],
        ),
        (
            "ranker = \"bm26\"\n",
            vec![
                "unknown ranker 'bm26' (from c.toml); known: jaccard, bm25, ",
                "hint: did you mean 'bm25'?",
            ],
        ),
        ("benchmark = \"../x\"\n", vec!["'../x' cannot name", "--benchmark"]),
        ("model = \"gpt\"\n", vec!["--endpoint is not set, and model gpt is not the embedded one"]),
    ];
    for (text, says) in cases {
        place.write("c.toml", text);
        place.stage(&["run", "--config", "c.toml"]).failed().says(&says);
    }
    place
        .stage(&["window", "--config", "no.toml"])
        .failed()
        .says(&["no.toml: cannot read this configuration"]);
    place.stage(&["window", "--windowsize", "3"]).failed().says(&["--windowsize", "--window-size"]);
    let output =
        place.command(&place.args(&["window"])).env("REPOFORMER_SLICE_SIZE", "half").output();
    Ran::of(output.unwrap())
        .failed()
        .says(&["invalid slice-size 'half' (from environment REPOFORMER_SLICE_SIZE)"]);
}

#[test]
fn every_source_is_checked_in_the_same_words() {
    let place = Place::new();
    place.write("c.toml", "temperature = 0.8\nranker = \"bm26\"\n");
    let known = "; known: jaccard, bm25, bm25-by-line, ";
    place
        .run(&["search", "--config", "c.toml"])
        .failed()
        .says(&[&format!("unknown ranker 'bm26' (from c.toml){known}")]);
    place
        .run(&["search", "--ranker", "bm27"])
        .failed()
        .says(&[&format!("unknown ranker 'bm27' (from command line){known}")]);
    let environment = |name: &str, value: &str| {
        let mut command = place.command(&["complete", "--show-settings"]);
        Ran::of(command.env(name, value).output().unwrap()).failed()
    };
    environment("REPOFORMER_RANKER", "bm28")
        .says(&[&format!("unknown ranker 'bm28' (from environment REPOFORMER_RANKER){known}")]);
    environment("REPOFORMER_SAMPLES", "0")
        .says(&["invalid samples '0' (from environment REPOFORMER_SAMPLES): expected a whole number from 1 to"]);
    environment("REPOFORMER_TEMPERATUR", "1").says(&[
        "unknown environment variable REPOFORMER_TEMPERATUR",
        "hint: did you mean REPOFORMER_TEMPERATURE?",
    ]);
    place
        .run(&["complete", "--temperature", "-1"])
        .failed()
        .says(&["invalid temperature '-1' (from command line): expected a number from 0 to 100"]);
}

#[test]
fn settings_of_completions_come_from_every_source() {
    let place = Place::empty();
    place.write(
        "repoformer.toml",
        "samples = 3\ntemperature = 0.8\nstop = [\"a,b\", \"c\"]\nseed = 5\ntop-p = 0.5\n",
    );
    let ran = shown(&place, &[("REPOFORMER_TOP_P", "0.9")], &[]);
    for (key, value, source) in [
        ("samples", "samples = 3", "repoformer.toml"),
        ("temperature", "temperature = 0.8", "repoformer.toml"),
        ("stop", "stop = [\"a,b\", \"c\"]", "repoformer.toml"),
        ("seed", "seed = 5", "repoformer.toml"),
        ("top-p", "top-p = 0.9", "environment REPOFORMER_TOP_P"),
        ("concurrency", "concurrency = 4", "default"),
        ("journal", "# journal =", "not set"),
    ] {
        assert_eq!(setting(&ran, key), (value.to_owned(), source.to_owned()));
    }
    // Another configuration takes the place of the one that is found by itself.
    place.write("c.toml", "samples = 2\n");
    let ran = shown(&place, &[], &["--config", "c.toml"]);
    assert_eq!(setting(&ran, "samples").0, "samples = 2");
    assert_eq!(setting(&ran, "seed").0, "# seed =");
}

#[test]
fn samples_of_the_environment_reach_the_model() {
    let place = Place::new();
    let complete = |name: &str, value: &str| {
        let args = place.args(&["complete"]);
        let mut command = place.command(&args);
        Ran::of(command.env(name, value).output().unwrap()).failed()
    };
    complete("REPOFORMER_SAMPLES", "3")
        .says(&["--samples is for a model on a server; the embedded model is in use"]);
    complete("REPOFORMER_MODEL", "other").says(&["--endpoint is not set"]);
}

#[test]
fn label_all_reads_the_environment_and_files() {
    let place = Place::empty();
    let show = |environment: &[(&str, &str)]| {
        let mut command =
            place.command(&["label", "all", "--show-settings", "--tokenizer", "t.json", "-o", "d"]);
        Ran::of(command.envs(environment.iter().copied()).output().unwrap()).done()
    };
    let ran = show(&[]);
    assert_eq!(setting(&ran, "cache-dir"), ("cache-dir = \"d/cache\"".into(), "label all".into()));
    assert_eq!(setting(&ran, "profile").0, "profile = \"repoformer-paper\"");
    assert_eq!(setting(&ran, "unit").1, "profile repoformer-paper");
    place.write("repoformer.toml", "profile = \"repoformer-release\"\n");
    let ran = show(&[("REPOFORMER_CACHE_DIR", "kept"), ("REPOFORMER_TASKS", "other.jsonl")]);
    assert_eq!(setting(&ran, "cache-dir").0, "cache-dir = \"kept\"");
    assert_eq!(setting(&ran, "chunk-stride").1, "profile repoformer-release");
    assert_eq!(
        setting(&ran, "tasks"),
        ("tasks = [\"d/instances.jsonl\"]".into(), "label all".into())
    );
}

#[test]
fn lists_of_files_are_split_by_commas_unless_a_file_has_one() {
    let place = Place::empty();
    let ran = shown(&place, &[], &["--tasks", "a.jsonl,b.jsonl"]);
    assert_eq!(setting(&ran, "tasks").0, "tasks = [\"a.jsonl\", \"b.jsonl\"]");
    place.write("a,b.jsonl", "");
    let ran = shown(&place, &[], &["--tasks", "a,b.jsonl"]);
    assert_eq!(setting(&ran, "tasks").0, "tasks = [\"a,b.jsonl\"]");
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
    let lines: Vec<&str> =
        quiet.stderr.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(lines, ["error", "hint"]);
}

#[test]
fn colours_are_for_terminals_or_where_asked_for() {
    let place = Place::new();
    let said = |args: &[&str], environment: &[(&str, &str)]| {
        let args = [&["vectorize"], args].concat();
        let args = place.args(&args);
        let mut command = place.command(&args);
        Ran::of(command.envs(environment.iter().copied()).output().unwrap()).failed().stderr
    };
    let plain = said(&[], &[]);
    assert!(plain.starts_with("error: ") && !plain.contains('\x1b'), "{plain}");
    let coloured = said(&["--color", "always"], &[]);
    assert!(coloured.starts_with("\x1b[1;31merror\x1b[0m: "), "{coloured}");
    assert_eq!(said(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]), plain);
    assert_eq!(said(&[], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]), plain);
    assert!(said(&[], &[("CLICOLOR_FORCE", "1")]).contains('\x1b'));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let place = Place::empty();
    // More than a pipe holds, so that the program is still writing when its reader leaves.
    place.write("repos/r/a.py", crate::support::source("name", 20_000));
    place.run(&["window", "--repos-dir", "repos", "--cache-dir", "cache"]).done();
    let inspect = "inspect --format jsonl --context cache/window/repos/r_ws20_slice2.bin";
    let ran = place.shell(&format!("{{ repoformer {inspect}; echo $? >code; }} | head -n 1"));
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
    assert_eq!(place.read("code"), "0\n");
}

#[test]
fn the_work_goes_on_where_nobody_hears_of_it() {
    let place = Place::new();
    for (stage, stderr) in [("window", "/dev/full"), ("vectorize", "/dev/null")] {
        let line = format!("repoformer {} 2>{stderr}", place.args(&[stage]).join(" "));
        place.shell(&line).done();
    }
    let line = format!("repoformer {} 2>&1 >/dev/null | true", place.args(&["run"]).join(" "));
    place.shell(&line).done();
    place.shell(&format!("repoformer {} 2>&-", place.args(&["run"]).join(" "))).done();
    place.stage(&["run"]).done().silent_on("written");
}

#[test]
fn standard_output_that_cannot_be_written_is_named() {
    let place = Place::new();
    place.all_stages(&[]);
    let line = format!("repoformer {} >/dev/full", place.args(&["eval"]).join(" "));
    place.shell(&line).failed().says(&["error: standard output: cannot write: No space left"]);
}

#[test]
fn usage_is_explained() {
    let place = Place::empty();
    place.run(&["widow"]).failed().says(&["'widow'", "window"]);
    let help = place.run(&["window", "--help"]).done().stdout;
    for flag in ["--repos-dir", "--tasks", "--cache-dir", "--show-settings", "--window-size"] {
        assert!(help.contains(flag), "{flag}");
    }
    assert!(help.contains("[possible values: half, step]") && help.contains("[default: 20]"));
    let short = place.run(&["window", "-h"]).done().stdout;
    assert!(short.contains("--window-size") && !short.contains("--embedding-timeout"));
    place.run(&["label", "score", "--help"]).done();
    let version = place.run(&["--version"]).done().stdout;
    assert_eq!(version, format!("repoformer {}\n", env!("CARGO_PKG_VERSION")));
}
