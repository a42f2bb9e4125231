//! Requests that a dry run counts.

use super::*;
use crate::tests::STAGES;
use crate::{Experiment, Plan, PlanVerdict, PlannedArtifact, Requests};

/// Returns the planned artifacts of `complete` without retrieval after the stages before it: the predictions, and their times.
fn plan_completion(experiment: &Experiment, completion: &Completion) -> [PlannedArtifact; 2] {
    let dry = Experiment { plan: Some(Plan::default()), ..experiment.clone() };
    STAGES[..4].iter().for_each(|(_, stage)| drop(stage(&dry).unwrap()));
    let planned = complete(&dry, &[Mode::Without], completion).unwrap().planned;
    let paths = experiment.paths();
    [paths.predictions(Mode::Without, MODEL), paths.latency(Mode::Without, MODEL)]
        .map(|path| planned.iter().find(|one| one.path == path).unwrap().clone())
}

#[test]
fn requests_are_counted_and_no_server_is_asked() {
    let mut place = TestCache::new();
    let (server, _) = refusing_server("load_west");
    let completion = with_server(&place.experiment.layout.cache, &server);
    // Without the prompts, the number is not known.
    let [predictions, times] = plan_completion(&place.experiment, &completion);
    assert_eq!(predictions.requests, Requests::Open);
    assert_eq!(predictions.to_record().get("requests"), None);
    assert_eq!(times.verdict.name(), "perhaps");
    let prompt = |place: &TestCache| {
        STAGES[..4].iter().for_each(|(_, stage)| drop(stage(&place.experiment).unwrap()));
    };
    prompt(&place);
    let [predictions, times] = plan_completion(&place.experiment, &completion);
    assert_eq!(predictions.to_record()["requests"], 2);
    assert_eq!(times.verdict, PlanVerdict::Missing);
    assert!(!completion.server.as_ref().unwrap().journal.exists());
    assert!(server.requests().is_empty());

    complete_modes(&place, &[Mode::Without], &completion);
    let asked = server.requests().len();
    // Failed requests are sent again only on demand.
    let [predictions, _] = plan_completion(&place.experiment, &completion);
    assert_eq!(predictions.verdict, PlanVerdict::Current);
    let again = change_sending(completion.clone(), |sending| sending.retry_failed = true);
    let [predictions, _] = plan_completion(&place.experiment, &again);
    assert_eq!(predictions.verdict, PlanVerdict::Incomplete { there: 1, prompts: 2 });
    assert_eq!(predictions.requests, Requests::Known(1));
    place.add_tasks("east", 21..25);
    prompt(&place);
    let [predictions, _] = plan_completion(&place.experiment, &completion);
    assert_eq!(predictions.requests, Requests::Known(4));
    assert_eq!(server.requests().len(), asked);
}
