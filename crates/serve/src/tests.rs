//! Helpers for unit tests: a repository, a model's server and messages.

use std::sync::{Arc, Mutex};

use repoformer_core::completion::Ending;
use repoformer_core::policy::Policy;
use repoformer_core::prompt::style::{Budget, Style};
use repoformer_core::repository::corpus::Walk;
use repoformer_core::repository::fragment::{ChunkShape, Cut};
use repoformer_core::retrieve::rank::{Ranker, Vocabulary};
use repoformer_core::retrieve::{Align, HoleGuard, QueryForm, SearchSettings, Visibility};
use repoformer_evaluate::score::Scoring;
use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
use repoformer_pipeline::{
    Experiment, Layout, Messages, NoMessages, PromptLayout, PromptSettings, RetrievalSettings,
    StageReport,
};
use repoformer_store::remark::Remark;
use repoformer_testing::{TestServer, ok, refusal};
use repoformer_text::language::Language;
use repoformer_text::tokenize::model::Tokenizer;
use tempfile::TempDir;

use crate::decide::{Decider, DecisionPolicy};
use crate::live::{Cursor, LiveRepository};
use crate::service::{Model, Service};
use crate::session::Session;

/// Repository `shop` in a temporary folder.
pub(crate) struct Shop {
    pub(crate) dir: TempDir,
    pub(crate) live: Arc<LiveRepository>,
}

/// Returns settings whose prompts show everything, in a style that asks the model.
pub(crate) fn prompts() -> PromptSettings {
    PromptSettings {
        align: Align::None,
        most: 3,
        full_paths: false,
        layout: PromptLayout::Style(Style::find_bundled("repoformer").unwrap().clone()),
        budget: Budget { total: 400, left: None, right: Some(40), cross_file: Some(200) },
        tokenizer: Tokenizer::p50k_base(),
    }
}

impl Shop {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            write(&dir, name, text);
        }
        let cut = Cut::Chunks(ChunkShape { size: 4, stride: 2 });
        let search = SearchSettings {
            ranker: Ranker::Jaccard,
            vocabulary: Vocabulary::Tokens(Tokenizer::p50k_base()),
            visibility: Visibility::Guarded(HoleGuard::Strict),
            top_k: 5,
        };
        let layout = Layout {
            cache: dir.path().join("cache"),
            benchmark: "shop".into(),
            language: Language::Python,
            cut,
            iteration: 1,
            shard: None,
        };
        let retrieval =
            RetrievalSettings { form: QueryForm::LastLines, query_lines: 4, search, dense: None };
        let experiment = Experiment {
            name: "shop".into(),
            repos_dir: dir.path().join("repos"),
            repositories: vec!["shop".into()],
            tasks: None,
            of_all_shards: None,
            layout,
            walk: Walk::Glob,
            retrieval,
            prompts: prompts(),
            scoring: Scoring::new(&[], &[]),
            plan: None,
            messages: Arc::new(NoMessages),
        };
        let (live, ()) = LiveRepository::open(experiment, |_| (), &mut |_| {}).unwrap();
        Self { dir, live: Arc::new(live) }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.dir, name, text);
    }
}

fn write(dir: &TempDir, name: &str, text: &str) {
    let path = dir.path().join("repos/shop").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns the cursor at the end of a file's text.
pub(crate) fn at_end<'a>(path: &'a str, text: &'a str) -> Cursor<'a> {
    Cursor { path, text, offset: text.len(), first_line: 0 }
}

/// Returns lines that look alike in files of different names.
pub(crate) fn lines(name: &str, numbers: std::ops::Range<usize>) -> String {
    numbers.map(|n| format!("{name}_{n} = load_table({n})\n")).collect()
}

/// Returns a client of a server that computes each answer from the JSON body of the request.
pub(crate) fn endpoint(
    answer: impl Fn(&serde_json::Value) -> serde_json::Value + Send + Sync + 'static,
) -> Endpoint {
    let server = TestServer::start_without_models(move |request| ok(&answer(&request.body)));
    let (url, _) = server.leak();
    Endpoint::new(&url, ConnectionSettings { retries: 0, ..ConnectionSettings::default() }).unwrap()
}

/// Returns the URL of a server that is always busy.
pub(crate) fn refusing_url() -> String {
    TestServer::start_without_models(|_| refusal("503 Service Unavailable", "busy")).leak().0
}

/// Returns a service of a repository whose model writes nothing.
pub(crate) fn service(shop: &Shop, policy: Policy) -> Service {
    let policy = DecisionPolicy { policy, threshold: 0.0, name: policy.to_string(), model: None };
    let decider = Decider::new(policy, &prompts()).unwrap();
    let (live, endpoint) = (Arc::clone(&shop.live), endpoint(|_| serde_json::json!({})));
    let messages = Arc::<MessageLog>::default();
    Service::new(live, decider, model(), endpoint, Session::new(0.0), None, messages)
}

/// Log that keeps messages.
#[derive(Default)]
pub(crate) struct MessageLog(pub(crate) Mutex<Vec<String>>);

impl MessageLog {
    fn add(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

impl Messages for MessageLog {
    fn tell(&self, remark: Remark) {
        self.add(&remark.to_string());
    }

    fn stage(&self, name: &str, _: &StageReport) {
        self.add(name);
    }

    fn remarks(&self, _: &StageReport) {}

    fn on_interruption(&self, _: Option<String>) -> Option<String> {
        None
    }
}

/// Returns a model with default settings.
pub(crate) fn model() -> Model {
    Model {
        name: "m".into(),
        max_tokens: 64,
        usual_tokens: 16,
        temperature: 0.0,
        top_p: None,
        stop: Vec::new(),
        ending: Ending::BeforeWhitespace,
    }
}
