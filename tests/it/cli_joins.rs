//! Files that are joined were made alike, as far as they say.

use serde_json::{Value, json};

use crate::support::{Place, jsonl, judge};

/// Predictions of the three tasks, as a server's answers to prompts of a style in a mode are recorded.
fn predictions(place: &Place, file: &str, mode: &str, change: impl Fn(&mut Value)) {
    let made = place.records(&place.named("cache/predictions/tasks", "none"));
    let record = |mut record: Value| {
        let metadata = &mut record["metadata"];
        (metadata["mode"], metadata["prompt_style"]) = (json!(mode), json!("starcoder"));
        metadata.as_object_mut().unwrap().remove("prompt_style_digest");
        record["asked"] = json!({"model": "m", "max_tokens": 48, "temperature": 0.0});
        change(&mut record);
        record
    };
    place.write(file, jsonl(&made.into_iter().map(record).collect::<Vec<_>>()));
}

#[test]
fn labels_compare_what_was_made_alike() {
    let place = Place::new();
    place.all_stages(&[]);
    let same = |_: &mut Value| {};
    predictions(&place, "base.jsonl", "none", same);
    predictions(&place, "rag.jsonl", "rg1", same);
    let judged = judge("tasks.jsonl", "base.jsonl", "rag.jsonl");
    place.run(&judged).done();
    for (setting, value, said) in [
        ("max_tokens", json!(64), "rag.jsonl: was made with max-tokens 64, but base.jsonl with 48"),
        ("temperature", json!(0.8), "was made with temperature 0.8, but base.jsonl with 0"),
        ("top_p", json!(0.9), "was made with top-p 0.9, but base.jsonl with not set"),
    ] {
        predictions(&place, "rag.jsonl", "rg1", |record| record["asked"][setting] = value.clone());
        place.run(&judged).failed().says(&[said, "make both with the same settings"]);
    }
    predictions(&place, "rag.jsonl", "rg1", |record| {
        record["metadata"]["prompt_style"] = json!("codellama");
    });
    place
        .run(&judged)
        .failed()
        .says(&["was made with prompt style codellama, but base.jsonl with starcoder"]);
    predictions(&place, "rag.jsonl", "rg1", |record| {
        record["metadata"].as_object_mut().unwrap().remove("prompt_style");
    });
    place.run(&judged).failed().says(&["was made with prompt style repocoder, but base.jsonl"]);
    // Half a file is not enough.
    predictions(&place, "rag.jsonl", "rg1", |record| {
        if record["metadata"]["row"] == 2 {
            record["asked"]["max_tokens"] = json!(64);
        }
    });
    place.run(&judged).failed().says(&["was made with max-tokens 48 and 64"]);
    predictions(&place, "rag.jsonl", "rg1", same);
    let swapped = judge("tasks.jsonl", "rag.jsonl", "base.jsonl");
    place
        .run(&swapped)
        .failed()
        .says(&["rag.jsonl: has predictions of mode rg1, but mode none is needed"]);
    predictions(&place, "gt.jsonl", "gt", same);
    place
        .run(&judge("tasks.jsonl", "gt.jsonl", "rag.jsonl"))
        .failed()
        .says(&["has predictions of mode gt"]);
    predictions(&place, "other.jsonl", "none", same);
    let none = judge("tasks.jsonl", "base.jsonl", "other.jsonl");
    place
        .run(&none)
        .failed()
        .says(&["has predictions of mode none, but a mode that retrieves is needed"]);
    // Prompts of another mode, samples and probabilities of one that retrieves.
    let more = |flag: &'static str, file: &'static str| [&judged[..], &[flag, file]].concat();
    place
        .run(&more("--prompts", "gt.jsonl"))
        .failed()
        .says(&["was made with mode gt, but rag.jsonl with rg1"]);
    let sampled = |record: &mut Value| record["entropy"] = json!(1.5);
    predictions(&place, "samples.jsonl", "rg1", sampled);
    place
        .run(&more("--samples-from", "samples.jsonl"))
        .failed()
        .says(&["samples.jsonl: has predictions of mode rg1"]);
    let token = |text: &'static str| {
        move |record: &mut Value| {
            record.as_object_mut().unwrap().remove("asked");
            record["next_token"] = json!({"text": text, "probability": 0.5});
        }
    };
    predictions(&place, "cc.jsonl", "none", token("<cc>"));
    place.run(&more("--probabilities", "cc.jsonl")).done();
    predictions(&place, "cc.jsonl", "rg1", token("<cc>"));
    place
        .run(&more("--probabilities", "cc.jsonl"))
        .failed()
        .says(&["cc.jsonl: has predictions of mode rg1"]);
    predictions(&place, "cc.jsonl", "none", token("<eof>"));
    place
        .run(&more("--probabilities", "cc.jsonl"))
        .failed()
        .says(&["token '<eof>', but prompt style starcoder requests retrieval with '<cc>'"]);
    predictions(&place, "cc.jsonl", "none", |record| {
        token("<cc>")(record);
        record["metadata"]["prompt_style"] = json!("codellama");
    });
    place.run(&more("--probabilities", "cc.jsonl")).failed().says(&["prompt style codellama"]);
}

#[test]
fn a_run_takes_signals_of_its_own_model_without_retrieval() {
    let place = Place::new();
    let style = ["--unit", "chunks", "--prompt-style", "starcoder"];
    place.stage(&[&["run", "--mode", "none,rg1"][..], &style].concat()).done();
    let run = |policy: &'static str, flag: &'static str, file: &'static str| {
        let run = ["run", "--mode", "none,rg1", "--policy", policy, flag, file];
        place.stage(&[&run[..], &style].concat())
    };
    let drawn = |record: &mut Value| {
        record.as_object_mut().unwrap().remove("asked");
        record["entropy"] = json!(1.5);
    };
    predictions(&place, "samples.jsonl", "none", drawn);
    run("entropy@1", "--samples-from", "samples.jsonl").done();
    predictions(&place, "samples.jsonl", "rg1", drawn);
    run("entropy@1", "--samples-from", "samples.jsonl")
        .failed()
        .says(&["samples.jsonl: has predictions of mode rg1"]);
    predictions(&place, "samples.jsonl", "none", |record| record["entropy"] = json!(1.5));
    run("entropy@1", "--samples-from", "samples.jsonl")
        .failed()
        .says(&["samples.jsonl: was made with model m, but ", "with in-context"]);
    let next = |style: &'static str, token: &'static str| {
        move |record: &mut Value| {
            record["metadata"]["prompt_style"] = json!(style);
            record["next_token"] = json!({"text": token, "probability": 0.5});
        }
    };
    // The model that decides may have a style of its own: --policy-prompt-style, by default repoformer.
    for style in ["starcoder", "repoformer"] {
        predictions(&place, "cc.jsonl", "none", next(style, "<cc>"));
        run("self@0.2", "--probabilities", "cc.jsonl").done();
    }
    predictions(&place, "cc.jsonl", "none", next("codellama", "<cc>"));
    run("self@0.2", "--probabilities", "cc.jsonl").failed().says(&["prompt style codellama"]);
    predictions(&place, "cc.jsonl", "rg1", next("starcoder", "<cc>"));
    run("self@0.2", "--probabilities", "cc.jsonl")
        .failed()
        .says(&["cc.jsonl: has predictions of mode rg1"]);
    predictions(&place, "cc.jsonl", "none", next("starcoder", "<eof>"));
    run("self@0.2", "--probabilities", "cc.jsonl")
        .failed()
        .says(&["requests retrieval with '<cc>'"]);
}
