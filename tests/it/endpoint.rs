//! Against a real model: `REPOFORMER_ENDPOINT=http://localhost:8080 cargo test --test it -- --ignored endpoint`.
//!
//! The text of a model differs from one processor to another, so these tests look at everything around it: fields, numbers
//! of samples, probabilities, cached answers. A key, if the server wants one, is taken from `REPOFORMER_API_KEY`.

use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
use serde_json::{Value, json};

use crate::support::{Place, Ran, TARGETS, jsonl, parse_jsonl};

/// The server, and the name of its first model.
struct Model {
    url: String,
    name: String,
    /// Tokens of its context, where it says.
    context: Option<u64>,
}

impl Model {
    fn served() -> Self {
        let url = std::env::var("REPOFORMER_ENDPOINT")
            .expect("REPOFORMER_ENDPOINT=http://localhost:8080 names the server");
        let endpoint = Endpoint::new(&url, ConnectionSettings::default()).unwrap();
        let models = endpoint.get_json("/v1/models").unwrap();
        let model = &models["data"][0];
        Self {
            name: model["id"].as_str().unwrap().to_owned(),
            context: model["meta"]["n_ctx"].as_u64(),
            url,
        }
    }

    /// Runs a command that asks this model.
    fn ask(&self, place: &Place, args: &[&str]) -> Ran {
        let server = ["--endpoint", &self.url, "--model", &self.name];
        let mut command = place.command(&[args, &server[..]].concat());
        command.envs(std::env::var("REPOFORMER_API_KEY").map(|key| ("REPOFORMER_API_KEY", key)));
        Ran::new(command.output().unwrap())
    }
}

const READER: &str =
    "import os\n\ndef read_text(path):\n    with open(path) as f:\n        return f.";

fn prompts(place: &Place, prompts: &[&str]) {
    let records: Vec<Value> = prompts.iter().map(|prompt| json!({"prompt": prompt})).collect();
    place.write("prompts.jsonl", jsonl(&records));
}

/// A completion's tokens with their log-probabilities.
fn logprobs(choice: &Value) -> Vec<f64> {
    let values = choice["logprobs"]["token_logprobs"].as_array().unwrap();
    values.iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
#[ignore = "asks a real model: set REPOFORMER_ENDPOINT"]
fn completions_have_texts_and_probabilities_and_are_kept() {
    let (model, place) = (Model::served(), Place::empty());
    prompts(&place, &[READER, "def add(a, b):\n    "]);
    let complete = ["complete", "--prompts", "prompts.jsonl", "--max-tokens", "6"];
    let first = model.ask(&place, &complete).done();
    let records = parse_jsonl(&first.stdout);
    assert_eq!(records.len(), 2);
    for record in &records {
        let choice = &record["choices"][0];
        assert!(choice["text"].is_string(), "{choice}");
        assert!(
            ["stop", "length"].contains(&choice["finish_reason"].as_str().unwrap()),
            "{choice}"
        );
        let logprobs = logprobs(choice);
        assert!((1..=6).contains(&logprobs.len()), "{choice}");
        assert!(logprobs.iter().all(|logprob| *logprob <= 0.0), "{choice}");
        let least = logprobs.iter().copied().fold(0.0, f64::min);
        assert_eq!(choice["min_logprob"], json!(least));
    }
    // The white space at a prompt's end is none of the completion's.
    let text = records[1]["choices"][0]["text"].as_str().unwrap();
    assert!(!text.starts_with('\n'), "{text:?}");
    let journal = place.path("data/cache/journal");
    let kept = || {
        let files = std::fs::read_dir(&journal).unwrap();
        let bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        bytes.collect::<Vec<_>>()
    };
    let before = kept();
    assert_eq!(model.ask(&place, &complete).done().stdout, first.stdout);
    assert_eq!(kept(), before, "nothing was asked for again");
}

#[test]
#[ignore = "asks a real model: set REPOFORMER_ENDPOINT"]
fn samples_come_in_the_number_asked_for() {
    let (model, place) = (Model::served(), Place::empty());
    prompts(&place, &[READER]);
    let sampled = ["--samples", "3", "--temperature", "1", "--seed", "7"];
    let complete = ["complete", "--prompts", "prompts.jsonl", "--max-tokens", "4"];
    let ran = model.ask(&place, &[&complete[..], &sampled[..]].concat()).done();
    let record = &parse_jsonl(&ran.stdout)[0];
    assert_eq!(record["choices"].as_array().unwrap().len(), 3);
    let entropy = record["entropy"].as_f64().unwrap();
    let sums = record["choices"].as_array().unwrap().iter();
    let mean = sums.map(|choice| -logprobs(choice).iter().sum::<f64>()).sum::<f64>() / 3.0;
    assert!((entropy - mean).abs() < 1e-9, "{entropy} {mean}");
}

#[test]
#[ignore = "asks a real model: set REPOFORMER_ENDPOINT"]
fn a_chat_answers() {
    let (model, place) = (Model::served(), Place::empty());
    prompts(&place, &[READER]);
    let complete = ["complete", "--prompts", "prompts.jsonl", "--max-tokens", "4", "--api", "chat"];
    let ran = model.ask(&place, &complete).done();
    assert!(parse_jsonl(&ran.stdout)[0]["choices"][0]["text"].is_string());
}

#[test]
#[ignore = "asks a real model: set REPOFORMER_ENDPOINT"]
fn the_probability_of_the_likeliest_token_is_that_of_the_completion() {
    let (model, place) = (Model::served(), Place::empty());
    prompts(&place, &[READER]);
    let complete = ["complete", "--prompts", "prompts.jsonl", "--max-tokens", "1"];
    let ran = model.ask(&place, &complete).done();
    let choice = &parse_jsonl(&ran.stdout)[0]["choices"][0];
    let (likeliest, logprob) = (choice["text"].as_str().unwrap(), logprobs(choice)[0]);
    let probability = |token: &str| -> Value {
        let ask = ["complete", "--prompts", "prompts.jsonl", "--probability-of", token];
        parse_jsonl(&model.ask(&place, &ask).done().stdout)[0]["next_token"].clone()
    };
    let found = probability(likeliest);
    // Batches of another size round otherwise.
    assert!((found["logprob"].as_f64().unwrap() - logprob).abs() < 0.05, "{found} {logprob}");
    let other = probability("(");
    let sum = found["probability"].as_f64().unwrap() + other["probability"].as_f64().unwrap();
    assert!(other["probability"].as_f64().unwrap() > 0.0 && sum <= 1.001, "{found} {other}");
    let several = "surely no token of any vocabulary";
    let ask = ["complete", "--prompts", "prompts.jsonl", "--probability-of", several];
    model.ask(&place, &ask).failed().says(&["tokens of this model"]);
}

#[test]
#[ignore = "asks a real model: set REPOFORMER_ENDPOINT"]
fn a_prompt_that_is_too_long_is_named_and_the_others_go_on() {
    let (model, place) = (Model::served(), Place::empty());
    let is_short = model.context.is_some_and(|tokens| tokens <= 8_192);
    assert!(is_short, "serve a model with a context of 8192 tokens or fewer");
    prompts(&place, &[READER, &"x = 1\n".repeat(9_000), "a = "]);
    let complete = ["complete", "--prompts", "prompts.jsonl", "--max-tokens", "2"];
    let ran = model.ask(&place, &complete).partly();
    assert_eq!(parse_jsonl(&ran.stdout).len(), 2);
    ran.says(&["prompts.jsonl:2", "context size"]);
}

#[test]
#[ignore = "asks a real model: set REPOFORMER_ENDPOINT"]
fn the_whole_experiment() {
    let (model, place) = (Model::served(), Place::new());
    let run = place.args(&["run", "--max-tokens", "12", "--format", "json", "--concurrency", "1"]);
    let rows: Value = serde_json::from_str(&model.ask(&place, &run).done().stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let modes: Vec<&str> = rows.iter().map(|row| row["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["none", "rg1", "rg-rg", "gt"]);
    for row in rows {
        assert_eq!(row["n"], TARGETS.len());
        assert!(row["generation_ms"].as_f64().unwrap() > 0.0, "{row}");
    }
}
