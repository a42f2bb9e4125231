//! `eval --exec`: predictions judged by the repository's own tests.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use repoformer::execution::guard::{Guard, Limits};
use repoformer::execution::mine::{Mining, mine};
use repoformer::execution::{
    self, Commands, Copies, Execution, Runner, Setup, Status, Subject, Summaries, Summary,
    Template, TestMap, Values,
};
use repoformer::pipeline::{Experiment, cached_predictions};
use repoformer::postprocess::{Hole, Recipe, Step};
use repoformer::predictions;
use repoformer::query::{Mode, REPOCODER_MODES};
use repoformer::score::Missing;
use repoformer::task::TaskSet;
use serde_json::{Value, json};

use super::session::{completion, modes, single};
use crate::args::{EvalArgs, ExecArgs, Isolation, ScoreFormat, Switch};
use crate::config::Settings;
use crate::output::{Printer, hinted, write_data};
use crate::table::Table;

/// What the guard is started from: the program that runs, even where its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// Reasons of exclusions that are told without `-v`, and tasks that are named for each.
const EXCLUDED_SHOWN: usize = 20;
const TASKS_NAMED: usize = 8;

pub(super) fn run(args: &EvalArgs, settings: &Settings, printer: &mut Printer) -> Result<()> {
    let exec = &args.exec;
    let experiment = single(settings, printer)?;
    let tasks = taking_part(&experiment)?;
    let bench = Bench::new(exec, &experiment, printer)?;
    let commands = commands(exec, &tasks, printer)?;
    let subjects = execution::subjects(
        &tasks,
        &experiment.repositories,
        &experiment.repos_dir,
        &commands,
    );
    bench.tell(&commands, &experiment, printer);
    let in_tests = tasks
        .tasks
        .iter()
        .filter(|task| execution::is_test_file(task.file_in_repository()));
    if let count @ 1.. = in_tests.count() {
        printer.warning(format!("exec: {count} tasks have their hole in test code, where a test that asserts nothing passes"));
    }
    let setup = bench.setup(exec, &experiment)?;
    let copies = Copies::new(
        (
            &experiment.repos_dir,
            &bench.work_dir,
            &experiment.layout.cache,
        ),
        &experiment.repositories,
        &bench.guard,
        setup,
        rayon::current_num_threads(),
    )?;
    if exec.mine_tests {
        return mine_tests(
            args,
            (&experiment, &tasks),
            (&bench, &commands, &subjects, &copies),
            printer,
        );
    }
    let missing: Missing = args.missing.parse()?;
    let mut named = Vec::new();
    for (name, samples) in samples(args, settings, &experiment, &tasks, printer)? {
        check_missing(&tasks, &samples, missing)?;
        let bar = printer.bar(&format!("exec {name}"), tasks.tasks.len());
        let progress = |done: usize, known: usize| {
            bar.set_length(known as u64);
            bar.set_position(done as u64);
        };
        let execution = execution::run(
            &tasks,
            &subjects,
            &samples,
            (&bench.settings, &copies),
            &progress,
        )?;
        bar.finish_and_clear();
        tell_execution(&name, &execution, &tasks, printer);
        named.push((name, execution));
    }
    let ks = pass_ks(exec)?;
    let manifest = bench.manifest(&experiment, &commands, &tasks);
    bench.write_manifest(&manifest, &named)?;
    let summaries: Vec<Summaries> = named
        .iter()
        .map(|(_, execution)| Summaries::of(execution, &ks, missing))
        .collect();
    tell_summaries(&named, &summaries, missing, printer);
    let text = match args.format {
        ScoreFormat::Text => table(&named, &summaries, &ks, args.per_task).text(),
        ScoreFormat::Tsv => table(&named, &summaries, &ks, args.per_task).tsv(),
        ScoreFormat::Json => json(&named, &summaries, &ks, args.per_task, &manifest),
        ScoreFormat::Jsonl => jsonl(&named, &summaries, &ks, args.per_task, &manifest),
    };
    write_data(&args.output, text.as_bytes())
}

/// Executions by the name of what was executed.
type Named = (String, Execution);

/// The tasks of the repositories that take part.
fn taking_part(experiment: &Experiment) -> Result<TaskSet> {
    let Some(tasks) = &experiment.tasks else {
        bail!("--tasks is not set, so there is nothing to run")
    };
    let mut tasks = tasks.clone();
    tasks.tasks.retain(|task| {
        experiment
            .repositories
            .binary_search(&task.repository)
            .is_ok()
    });
    Ok(tasks)
}

fn commands(exec: &ExecArgs, tasks: &TaskSet, printer: &mut Printer) -> Result<Commands> {
    let test = exec
        .test_cmd
        .as_deref()
        .map(|text| Template::parse("test-cmd", text));
    let mut map = None;
    if let Some(path) = &exec.tests {
        let reading = TestMap::read(path, tasks)?;
        printer.problems(&reading.problems);
        map = Some(reading.map);
    }
    Ok(Commands {
        test: test.transpose()?,
        map,
        runner: exec
            .runner
            .as_deref()
            .map_or(Ok(Runner::Auto), str::parse)?,
    })
}

fn pass_ks(exec: &ExecArgs) -> Result<Vec<usize>> {
    let mut ks = exec.pass_k.clone();
    if ks.contains(&0) {
        return Err(hinted(
            anyhow!("--pass-k cannot be 0"),
            "choose numbers from 1",
        ));
    }
    if ks.is_empty() {
        ks.push(1);
    }
    ks.sort_unstable();
    ks.dedup();
    Ok(ks)
}

/// Where and how runs are made.
struct Bench {
    guard: Guard,
    settings: execution::Settings,
    work_dir: PathBuf,
    setup_seconds: f64,
    setup_command: Option<String>,
}

impl Bench {
    fn new(exec: &ExecArgs, experiment: &Experiment, printer: &Printer) -> Result<Self> {
        let folder = experiment
            .layout
            .cache
            .join("exec")
            .join(&experiment.layout.benchmark);
        let work_dir = exec
            .work_dir
            .clone()
            .unwrap_or_else(|| folder.join("copies"));
        let results = exec
            .exec_results
            .clone()
            .unwrap_or_else(|| folder.join("results.jsonl"));
        std::fs::create_dir_all(&work_dir).map_err(|e| {
            anyhow!(
                "{}: cannot create this folder for copies: {e}",
                work_dir.display()
            )
        })?;
        let seconds = |name: &str, value: Option<f64>, default: f64| match value.unwrap_or(default)
        {
            value if value > 0.0 && value.is_finite() => Ok(value),
            _ => Err(hinted(
                anyhow!("--{name} must be more than 0 seconds"),
                "choose another",
            )),
        };
        let wall_seconds = seconds("timeout", exec.timeout, 60.0)?;
        let limits = Limits {
            wall_seconds,
            cpu_seconds: seconds("cpu-limit", exec.cpu_limit, 4.0 * wall_seconds)?,
            memory_mb: exec.memory_limit.unwrap_or(4096).max(1),
            disk_mb: exec.disk_limit.unwrap_or(1024).max(1),
            processes: exec.process_limit.unwrap_or(256).max(1),
        };
        let isolation = exec.isolation.unwrap_or(Isolation::Auto);
        let network = exec.network == Some(Switch::On);
        let trial = work_dir.canonicalize()?;
        let guard = Guard::try_out(PROGRAM.into(), &trial, isolation != Isolation::Off, network)?;
        let open = &guard.enclosure().open;
        if isolation == Isolation::Required && !open.is_empty() {
            return Err(hinted(
                anyhow!("runs cannot be closed off here: {}", open.join("; ")),
                "leave out --isolation required to run them all the same",
            ));
        }
        for part in open {
            printer.warning(format!("exec: {part}"));
        }
        Ok(Self {
            guard,
            settings: execution::Settings {
                limits,
                oracle_runs: exec.oracle_runs.unwrap_or(1).max(1),
                results,
            },
            work_dir,
            setup_seconds: seconds("setup-timeout", exec.setup_timeout, 1800.0)?,
            setup_command: exec.setup_cmd.clone(),
        })
    }

    fn setup(&self, exec: &ExecArgs, experiment: &Experiment) -> Result<Setup> {
        let template = exec
            .setup_cmd
            .as_deref()
            .map(|text| Template::parse("setup-cmd", text))
            .transpose()?;
        if let Some(template) = &template
            && ["tests", "task_id", "path"]
                .iter()
                .any(|place| template.names(place))
        {
            return Err(hinted(
                anyhow!("--setup-cmd is run once a repository, not once a task"),
                "of {tests}, {task_id}, {path} and {repository} it can name the last",
            ));
        }
        let command = |name: &String| {
            let values = Values {
                repository: name,
                ..Values::default()
            };
            template.as_ref().map(|template| template.fill(values))
        };
        Ok(Setup {
            commands: experiment.repositories.iter().map(command).collect(),
            seconds: self.setup_seconds,
        })
    }

    /// Says what is run where nobody said so.
    fn tell(&self, commands: &Commands, experiment: &Experiment, printer: &Printer) {
        printer.detail(format!("exec: {}", self.guard.enclosure().describe()));
        if commands.test.is_none() {
            for name in &experiment.repositories {
                let folder = experiment.repos_dir.join(name);
                if let Some(command) = execution::default_test_command(&folder) {
                    printer.note(format!(
                        "exec: {name}: tests are run with `{command}` (--test-cmd)"
                    ));
                }
            }
        }
        if commands.map.is_none() {
            printer.note("exec: each task runs all tests of its repository (--tests says which, --mine-tests finds them)");
        }
    }

    /// What the results were made with; nothing in it depends on the time or the number of workers.
    fn manifest(&self, experiment: &Experiment, commands: &Commands, tasks: &TaskSet) -> Value {
        let folder = |name: &String| experiment.repos_dir.join(name);
        let shown = |name: &String| match (
            &commands.test,
            execution::default_test_command(&folder(name)),
        ) {
            (Some(template), _) => template.to_string(),
            (None, default) => default.unwrap_or_default().to_owned(),
        };
        let test: serde_json::Map<String, Value> = experiment
            .repositories
            .iter()
            .map(|name| (name.clone(), shown(name).into()))
            .collect();
        json!({
            "tool": format!("repoformer {}", env!("CARGO_PKG_VERSION")),
            "tasks": {"file": tasks.path.display().to_string(), "digest": tasks.digest()},
            "test_cmd": test,
            "setup_cmd": self.setup_command,
            "tests": commands.map.as_ref().map(|map| map.path.display().to_string()),
            "runner": commands.runner,
            "limits": self.settings.limits,
            "oracle_runs": self.settings.oracle_runs,
            "isolation": self.guard.enclosure(),
        })
    }

    /// Beside the results, with what was done this time.
    fn write_manifest(&self, manifest: &Value, named: &[Named]) -> Result<()> {
        let mut record = manifest.clone();
        let counts = named.iter().map(|(name, execution)| {
            let count = json!({"runs": execution.runs, "reused": execution.reused});
            (name.clone(), count)
        });
        record["runs"] = Value::Object(counts.collect());
        let path = self.settings.results.with_extension("manifest.json");
        let mut text = serde_json::to_vec_pretty(&record)?;
        text.push(b'\n');
        Ok(repoformer::artifact::write_file(&path, &text)?)
    }
}

/// What is done to predictions before they are put into their files; nothing unless it is asked for.
fn recipe(args: &EvalArgs) -> Result<Recipe> {
    let names = args.postprocess.as_deref().unwrap_or("none");
    let recipe = match names {
        "own" => None,
        names => Some(names.parse::<Recipe>()?).filter(|recipe| !recipe.has(Step::FunctionBody)),
    };
    recipe.ok_or_else(|| {
        hinted(
            anyhow!("--postprocess {names} makes texts to compare, not to put into a file"),
            "name steps that only cut, such as chat or lines",
        )
    })
}

/// What is to be executed, by name: a file, the truth, the modes of the cache.
fn samples(
    args: &EvalArgs,
    settings: &Settings,
    experiment: &Experiment,
    tasks: &TaskSet,
    printer: &mut Printer,
) -> Result<Vec<(String, Vec<Vec<String>>)>> {
    if args.check_references {
        let truth = tasks
            .tasks
            .iter()
            .map(|task| vec![task.ground_truth.clone()]);
        return Ok(vec![("references".into(), truth.collect())]);
    }
    let recipe = recipe(args)?;
    let mut read = |path: &Path| -> Result<Vec<Vec<String>>> {
        // Joined with all tasks of the file: ids are told apart by their places there.
        let all = experiment.tasks.as_ref().unwrap_or(tasks);
        let joined = predictions::read(path, all)?;
        printer.problems(&joined.problems);
        let of = all.tasks.iter().zip(joined.predictions);
        Ok(of
            .filter(|(task, _)| {
                experiment
                    .repositories
                    .binary_search(&task.repository)
                    .is_ok()
            })
            .map(|(task, samples)| {
                let cut =
                    |sample: &String| recipe.apply(Hole::of(task), sample).prediction.into_owned();
                samples.iter().map(cut).collect()
            })
            .collect())
    };
    if let Some(path) = &args.predictions {
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        return Ok(vec![(
            stem.unwrap_or_else(|| "predictions".into()),
            read(path)?,
        )]);
    }
    let completion = completion(settings, None)?;
    let asked = !settings.list("mode").is_empty();
    let all: &[Mode] = match experiment.chunks {
        Some(_) => &Mode::ALL,
        None => &REPOCODER_MODES,
    };
    let mut named = Vec::new();
    for mode in modes(settings, all)? {
        if asked
            || experiment
                .layout
                .predictions(mode, &completion.model)
                .exists()
        {
            let path = cached_predictions(experiment, mode, &completion)?;
            named.push((mode.to_string(), read(&path)?));
        }
    }
    if named.is_empty() {
        return Err(hinted(
            anyhow!("there are no predictions in the cache to run tests with"),
            "make them with `repoformer complete`, name a file with --predictions, or look at the oracle alone with --check-references",
        ));
    }
    Ok(named)
}

fn check_missing(tasks: &TaskSet, samples: &[Vec<String>], missing: Missing) -> Result<()> {
    let pairs = tasks.tasks.iter().zip(samples);
    let without: Vec<_> = pairs.filter(|(_, samples)| samples.is_empty()).collect();
    match (missing, without.first()) {
        (Missing::Error, Some((task, _))) => {
            let (count, all) = (without.len(), tasks.tasks.len());
            let reason = format!(
                "it has no prediction ({count} of {all} tasks have none); --missing zero counts them as failed, --missing skip leaves them out"
            );
            Err(tasks.error(task, reason).into())
        }
        _ => Ok(()),
    }
}

/// Names tasks below a warning, those of one reason together.
fn list_tasks(tasks: &TaskSet, of: Vec<(usize, &str, &str)>, printer: &Printer) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (line, id, reason) in of {
        let name = format!("{id} (line {line})");
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let path = tasks.path.display();
    let lines = reasons.into_iter().map(|(reason, mut names)| {
        let more = names.len().saturating_sub(TASKS_NAMED);
        if more > 0 && !printer.is_verbose() {
            names.truncate(TASKS_NAMED);
            names.push(format!("… and {more} more (-v)"));
        }
        format!("  {path}: {reason}: {}", names.join(", "))
    });
    printer.list(lines.collect(), EXCLUDED_SHOWN);
}

/// Says which tasks take no part, and which repositories cannot be run.
fn tell_execution(name: &str, execution: &Execution, tasks: &TaskSet, printer: &mut Printer) {
    for (repository, broken) in &execution.broken {
        let output = match broken.output.trim() {
            "" => String::new(),
            output => format!("\n{output}"),
        };
        printer.failed(&format!(
            "{repository}: its tests cannot be run: {}{output}",
            broken.reason
        ));
    }
    let excluded: Vec<_> = execution
        .tasks
        .iter()
        .filter(|task| task.excluded.is_some())
        .collect();
    if !excluded.is_empty() {
        printer.warning(format!(
            "{name}: {} of {} tasks are excluded, since their tests cannot tell",
            excluded.len(),
            execution.tasks.len()
        ));
        let of = excluded
            .iter()
            .filter_map(|task| Some((task.line, &*task.task_id, &*task.excluded.as_ref()?.reason)));
        list_tasks(tasks, of.collect(), printer);
    }
    printer.note(format!(
        "exec {name}: {} runs, {} results known or shared",
        execution.runs, execution.reused
    ));
}

fn tell_summaries(
    named: &[Named],
    summaries: &[Summaries],
    missing: Missing,
    printer: &mut Printer,
) {
    for ((name, _), summary) in named.iter().zip(summaries) {
        let all = &summary.all;
        if all.missing > 0 {
            let count = if missing == Missing::Skip {
                "are left out"
            } else {
                "count as failed"
            };
            printer.warning(format!(
                "{name}: {} tasks have no prediction; they {count}",
                all.missing
            ));
        }
        for (k, rate) in &all.rates {
            if rate.is_none() && all.n > 0 {
                printer.warning(format!(
                    "{name}: there is no pass@{k}: a task has {} sample(s)",
                    all.samples.0
                ));
            }
        }
        if all.n == 0 {
            printer.failed(&format!("{name}: no task can be judged by its tests"));
        }
    }
}

fn rate_cell(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", 100.0 * rate))
}

/// A row a task where asked for, a repository, and one for all; rates × 100, statuses in samples.
fn table(named: &[Named], summaries: &[Summaries], ks: &[usize], per_task: bool) -> Table {
    let rates: Vec<String> = ks.iter().map(|k| format!("pass@{k}")).collect();
    let mut head = vec![
        "predictions",
        "repository",
        "tasks",
        "excluded",
        "n",
        "samples",
    ];
    if per_task {
        head.extend(["row", "task_id"]);
    }
    head.extend(rates.iter().map(String::as_str));
    head.extend(Status::ALL.map(Status::name));
    let mut table = Table::new(&head);
    for ((name, execution), summary) in named.iter().zip(summaries) {
        for task in execution.tasks.iter().filter(|_| per_task) {
            let sound = usize::from(task.excluded.is_none());
            let mut cells = vec![
                name.clone(),
                task.repository.clone(),
                "1".into(),
                (1 - sound).to_string(),
            ];
            cells.extend([sound.to_string(), task.samples.len().to_string()]);
            cells.extend([task.row.to_string(), task.task_id.clone()]);
            cells.extend(ks.iter().map(|&k| rate_cell(task.pass_at(k))));
            cells.extend(Status::ALL.map(|status| {
                task.samples
                    .iter()
                    .filter(|of| **of == status)
                    .count()
                    .to_string()
            }));
            table.row(cells);
        }
        for (repository, summary) in &summary.repositories {
            table.row(summary_row(name, repository, summary, per_task));
        }
        table.row(summary_row(name, "all", &summary.all, per_task));
    }
    table
}

fn summary_row(name: &str, repository: &str, summary: &Summary, per_task: bool) -> Vec<String> {
    let (least, most) = summary.samples;
    let samples = if least == most {
        least.to_string()
    } else {
        format!("{least}-{most}")
    };
    let mut cells = vec![
        name.to_owned(),
        repository.to_owned(),
        summary.tasks.to_string(),
    ];
    cells.extend([summary.excluded.to_string(), summary.n.to_string(), samples]);
    if per_task {
        cells.extend([String::new(), String::new()]);
    }
    cells.extend(summary.rates.iter().map(|(_, rate)| rate_cell(*rate)));
    cells.extend(summary.counts.iter().map(ToString::to_string));
    cells
}

fn record(
    (name, execution): &Named,
    summary: &Summaries,
    (ks, per_task): (&[usize], bool),
    manifest: &Value,
) -> Value {
    let repositories: serde_json::Map<String, Value> = summary
        .repositories
        .iter()
        .map(|(name, summary)| (name.clone(), summary.to_record()))
        .collect();
    let excluded = execution
        .tasks
        .iter()
        .filter(|task| task.excluded.is_some());
    let excluded: Vec<Value> = excluded.map(|task| task.to_record(ks)).collect();
    let mut record = json!({
        "predictions": name, "all": summary.all.to_record(), "repositories": repositories,
        "missing": summary.all.missing, "excluded": excluded,
    });
    if per_task {
        record["tasks"] = execution
            .tasks
            .iter()
            .map(|task| task.to_record(ks))
            .collect();
    }
    record["manifest"] = manifest.clone();
    record
}

fn json(
    named: &[Named],
    summaries: &[Summaries],
    ks: &[usize],
    per_task: bool,
    manifest: &Value,
) -> String {
    let both = named.iter().zip(summaries);
    let mut records: Vec<Value> = both
        .map(|(named, summary)| record(named, summary, (ks, per_task), manifest))
        .collect();
    let value = match records.len() {
        1 => records.remove(0),
        _ => records.into(),
    };
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

/// Task records where asked for, else a line for each set of predictions.
fn jsonl(
    named: &[Named],
    summaries: &[Summaries],
    ks: &[usize],
    per_task: bool,
    manifest: &Value,
) -> String {
    let mut lines = String::new();
    for (of, summary) in named.iter().zip(summaries) {
        if !per_task {
            lines += &(record(of, summary, (ks, false), manifest).to_string() + "\n");
            continue;
        }
        for task in &of.1.tasks {
            let mut record = task.to_record(ks);
            if named.len() > 1 {
                record["predictions"] = of.0.as_str().into();
            }
            lines += &(record.to_string() + "\n");
        }
    }
    lines
}

/// `--mine-tests`: a map of the tests that notice a failure in each hole.
fn mine_tests(
    args: &EvalArgs,
    (experiment, tasks): (&Experiment, &TaskSet),
    (bench, commands, subjects, copies): (
        &Bench,
        &Commands,
        &[Result<Subject, String>],
        &Copies<'_>,
    ),
    printer: &mut Printer,
) -> Result<()> {
    let exec = &args.exec;
    let templates: Result<Vec<Template>, String> = experiment
        .repositories
        .iter()
        .map(|name| commands.template(&experiment.repos_dir.join(name)))
        .collect();
    let templates = templates.map_err(|reason| anyhow!(reason))?;
    if let Some(fixed) = templates.iter().find(|template| !template.names("tests")) {
        return Err(hinted(
            anyhow!("--test-cmd runs the same tests for every task: `{fixed}`"),
            "put {tests} where single tests are named",
        ));
    }
    let suite = |(name, template): (&String, &Template)| {
        let values = Values {
            repository: name,
            ..Values::default()
        };
        // The default stops at the first failure; the whole suite is to be seen here.
        let command = template.fill(values);
        if commands.test.is_none() {
            command.replace(" -x ", " ")
        } else {
            command
        }
    };
    let mining = Mining {
        max_tests: exec.max_tests.unwrap_or(10).max(1),
        suites: experiment
            .repositories
            .iter()
            .zip(&templates)
            .map(suite)
            .collect(),
        templates,
        list: exec
            .list_tests_cmd
            .as_deref()
            .map(|text| Template::parse("list-tests-cmd", text))
            .transpose()?,
        suite_seconds: bench.setup_seconds,
    };
    let bar = printer.bar("mine tests", tasks.tasks.len());
    let progress = |done: usize, known: usize| {
        bar.set_length(known as u64);
        bar.set_position(done as u64);
    };
    let mined = mine(
        tasks,
        subjects,
        &mining,
        (&bench.settings, copies),
        &progress,
    )?;
    bar.finish_and_clear();
    for (place, reason) in &mined.broken {
        printer.failed(&format!(
            "{}: its tests cannot be looked at: {reason}",
            experiment.repositories[*place]
        ));
    }
    let found: Vec<_> = mined
        .tasks
        .iter()
        .filter(|mined| !mined.tests.is_empty())
        .collect();
    let lost = mined
        .tasks
        .iter()
        .filter_map(|mined| Some((mined.line, &*mined.task_id, mined.reason.as_deref()?)));
    let lost: Vec<_> = lost.collect();
    if !lost.is_empty() {
        let count = lost.len();
        printer.warning(format!(
            "{count} of {} tasks have no test that notices a failure in their hole",
            mined.tasks.len()
        ));
        list_tasks(tasks, lost, printer);
    }
    let tests: usize = found.iter().map(|mined| mined.tests.len()).sum();
    printer.note(format!(
        "mine tests: {tests} tests of {} tasks",
        found.len()
    ));
    if found.is_empty() {
        printer.failed("no test was found for any task");
    }
    let lines: String = found
        .iter()
        .map(|mined| mined.to_record().to_string() + "\n")
        .collect();
    write_data(&args.output, lines.as_bytes())
}
