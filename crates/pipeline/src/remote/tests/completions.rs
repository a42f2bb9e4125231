//! Completions of cached prompts.

use repoformer_core::completion::Api;
use repoformer_evaluate::score::MissingPredictions;
use repoformer_testing::ok;
use serde_json::json;

use super::*;
use crate::{Experiment, Plan, PlanVerdict, complete_file, evaluate, latencies};

const WITHOUT: [Mode; 1] = [Mode::Without];

/// Checks the requests to a server that writes these tokens, and the scores of its completions.
fn check_ends(tokens: &'static [&'static str], api: Api, cut: &str) {
    let place = TestCache::with_prompts();
    let server = token_server(tokens);
    let completion = change_server(with_server(&place.experiment.layout.cache, &server), |own| {
        own.asking.api = api;
    });
    let mut scoring = place.experiment.scoring.clone();
    scoring.postprocess = cut.parse().unwrap();
    let path = place.experiment.paths().predictions(Mode::Without, MODEL);
    let score = |bound| {
        let report = complete_modes(&place, &WITHOUT, &with_bound(completion.clone(), bound));
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let joined = evaluate(&place.experiment, &path, &scoring, MissingPredictions::Error);
        let mut scores = joined.unwrap().scores.unwrap();
        scores.tasks.iter_mut().for_each(|task| task.raw.clear());
        (fs::read_to_string(&path).unwrap(), (scores.all, scores.tasks))
    };
    let (whole, scores) = score(CompletionBound::Tokens);
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.body.get("stream").is_none()));
    // The answers of all tokens that the journal has are used.
    let (kept, of_kept) = score(CompletionBound::Lines);
    assert_eq!((server.requests().len(), &of_kept), (requests.len(), &scores));
    remove(&place, "journal");
    remove(&place, "predictions");
    let (streamed, of_streamed) = score(CompletionBound::Lines);
    let streams = server.requests().split_off(requests.len());
    assert_eq!(streams.len(), 2);
    assert!(streams.iter().all(|request| request.body["stream"] == true));
    assert_eq!((&streamed, &of_streamed), (&kept, &scores));
    let first = |text: &str| parse(text.as_bytes())[0]["choices"][0].clone();
    let (whole, streamed) = (first(&whole), first(&streamed));
    let [long, short] = [&whole, &streamed].map(|choice| choice["text"].as_str().unwrap());
    assert!(long.starts_with(short) && short.len() < long.len(), "{short:?} {long:?}");
    assert_eq!([&whole, &streamed].map(|choice| &choice["finish_reason"]), ["length", "stop"]);
    let count = |choice: &Value| choice["logprobs"]["tokens"].as_array().unwrap().len();
    assert!(count(&streamed) < count(&whole) && streamed["mean_logprob"].is_number());
    // The journal keeps the text that arrived.
    let journal = fs::read_to_string(&completion.server.as_ref().unwrap().journal).unwrap();
    let is_ended = !journal.contains("more") && !journal.contains("It adds");
    assert!(journal.contains("store_1") && is_ended, "{journal}");
}

/// Completions that end after the target's lines equal completions of all tokens, cut after these lines: their scores are the same,
/// and their bytes do not depend on whether a server streamed or the journal had all tokens.
#[test]
fn completions_end_after_the_lines_of_their_targets() {
    const CODE: &[&str] =
        &["\n", "\n", "store_1", "2 = ", "store(12)", "\n", "\n", "more", " = 1\nand", " more"];
    const CHAT: &[&str] = &[
        "Sure, here is the code:\n",
        "``",
        "`python",
        "\nstore_12",
        " = 1",
        "\n",
        "x = 2\n",
        "```\n",
        "It adds.",
    ];
    check_ends(CODE, Api::Completions, "own");
    check_ends(CHAT, Api::Chat, "chat,stripped-lines");
}

#[test]
fn the_time_of_a_longer_answer_is_not_that_of_a_shorter_one() {
    let place = TestCache::with_prompts();
    let server = token_server(&["\n", "x = f(1)", "\n", "more"]);
    let completion = with_server(&place.experiment.layout.cache, &server);
    let are_timed = |bound| -> Vec<bool> {
        complete_modes(&place, &WITHOUT, &with_bound(completion.clone(), bound));
        let times = latencies(&place.experiment, Mode::Without, MODEL).unwrap();
        times.iter().map(|time| time.generation_ms.is_some()).collect()
    };
    assert_eq!(are_timed(CompletionBound::Tokens), [true, true]);
    assert_eq!(are_timed(CompletionBound::Lines), [false; 0]);
    assert_eq!(server.requests().len(), 2);
    // One answer is removed, and the next request ends after the lines.
    keep_one_answer(&completion);
    remove(&place, "predictions");
    let mut timed = are_timed(CompletionBound::Lines);
    timed.sort_unstable();
    assert_eq!(timed, [false, true]);
}

/// Tokens that do not spell the completion, such as those of a model's thoughts before it.
#[test]
fn probabilities_of_other_tokens_are_not_those_of_the_completion() {
    let place = TestCache::with_prompts();
    let server = TestServer::start_without_models(|request| {
        let logprob = |token: &str| json!({"token": token, "logprob": -0.5});
        let tokens = ["a thought", "\n", "x = 1", "\n", "y"].map(logprob);
        let choice = |index: u64| json!({"index": index, "text": "\nx = 1\ny", "finish_reason": "length", "logprobs": {"content": tokens}});
        let samples = request.body["n"].as_u64().unwrap_or(1);
        ok(&json!({"choices": (0..samples).map(choice).collect::<Vec<_>>()}))
    });
    let completion = with_server(&place.experiment.layout.cache, &server);
    for (bound, text, listed) in
        [(CompletionBound::Lines, "x = 1", 0), (CompletionBound::Tokens, "x = 1\ny", 5)]
    {
        complete_modes(&place, &WITHOUT, &with_bound(completion.clone(), bound));
        let choice = &predictions(&place, Mode::Without)[0]["choices"][0];
        assert_eq!(choice["text"], text);
        let count = choice["logprobs"]["tokens"].as_array().map_or(0, Vec::len);
        let probabilities = (choice.get("mean_logprob"), choice.get("min_logprob"));
        assert_eq!((count, probabilities), (listed, (None, None)));
    }
    let samples = change_server(with_bound(completion, CompletionBound::Tokens), |own| {
        (own.asking.samples, own.asking.temperature) = (2, 1.0);
    });
    complete_modes(&place, &WITHOUT, &samples);
    let record = &predictions(&place, Mode::Without)[0];
    assert_eq!((record["choices"].as_array().unwrap().len(), record.get("entropy")), (2, None));
}

/// Answers that other commands add to the journal are part of the cache's predictions from the next run on.
#[test]
fn answers_that_came_meanwhile_are_added() {
    let place = TestCache::with_prompts();
    let (server, is_sound) = refusing_server("load_west");
    let completion = with_server(&place.experiment.layout.cache, &server);
    let report = complete_modes(&place, &WITHOUT, &completion);
    assert_said(&report.problems, &["task west/0: ", "exceeds the available context size"]);
    assert_eq!((report.problems.len(), predictions(&place, Mode::Without).len()), (1, 1));
    is_sound.store(true, Ordering::SeqCst);
    let prompts = place.experiment.paths().prompts(Mode::Without);
    let again = change_sending(completion.clone(), |sending| sending.retry_failed = true);
    assert_eq!(complete_file(&prompts, &again, None, &mut |_| Ok(())).unwrap().records, 2);
    let asked = server.requests().len();
    let dry = Experiment { plan: Some(Plan::default()), ..place.experiment.clone() };
    let planned = complete(&dry, &WITHOUT, &completion).unwrap().planned;
    let path = place.experiment.paths().predictions(Mode::Without, MODEL);
    let verdict = &planned.iter().find(|one| one.path == path).unwrap().verdict;
    assert_eq!(*verdict, PlanVerdict::Incomplete { there: 1, prompts: 2 });
    assert_eq!(verdict.reason().unwrap(), "1 of 2 prompts has no prediction");
    let counts = |report: StageReport| (report.built, report.current, report.records);
    assert_eq!(counts(complete_modes(&place, &WITHOUT, &completion)), (1, 0, 2));
    assert_eq!((predictions(&place, Mode::Without).len(), server.requests().len()), (2, asked));
    assert_eq!(counts(complete_modes(&place, &WITHOUT, &completion)), (0, 1, 2));
}
