use super::*;
use crate::endpoint::ConnectionSettings;
use crate::endpoint::test_client::{client, quick};
use proptest::prelude::*;
use repoformer_testing::{ReceivedRequest, TestServer, answer, gate, ok, refusal};
use std::sync::Barrier;
use std::time::Duration;

/// Returns the test model's vector for a text: numbers from the text's digest.
fn model(text: &str, dim: usize) -> Vec<f32> {
    let mut bytes = vec![0; dim];
    let mut hasher = blake3::Hasher::new();
    hasher.update(text.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes.iter().map(|byte| f32::from(*byte) / 256.0 + 1.0 / 512.0).collect()
}

/// Returns the model's answer, with the vectors in reverse order, as their `index` allows.
fn answered(request: &ReceivedRequest, dim: usize) -> Value {
    let entry =
        |(index, text): (usize, &&str)| json!({"index": index, "embedding": model(text, dim)});
    let data: Vec<Value> = request.input().iter().enumerate().map(entry).rev().collect();
    json!({"object": "list", "data": data, "model": "m"})
}

struct Setting {
    dir: tempfile::TempDir,
    server: TestServer,
}

impl Setting {
    fn new(answer: impl Fn(usize, &ReceivedRequest) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), server: TestServer::start(answer) }
    }

    fn store(&self) -> VectorStore {
        VectorStore::open(&self.dir.path().join("v"), "m").unwrap()
    }

    /// Returns an embedder that sends two texts per request, one request at a time.
    fn embedder(&self) -> Embedder {
        Embedder::new(client(&self.server), "m").batch_size(2).concurrency(1)
    }

    fn embed(&self, texts: &[&str]) -> Result<EmbeddingCounts> {
        self.embedder().embed(texts.iter().copied(), &mut self.store())
    }

    /// Returns every text that was requested, in order.
    fn asked(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().flat_map(|request| request.input()).map(Into::into).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_text_has_its_own_vector_and_is_asked_for_once(
        texts in prop::collection::vec("[a-c]{0,2}", 0..30),
        more in prop::collection::vec("[a-c]{0,2}", 0..30),
        batch_size in 0_usize..5,
        concurrency in 0_usize..5,
    ) {
        let setting = Setting::new(|_, request| ok(&answered(request, 5)));
        let embedder = setting.embedder().batch_size(batch_size).concurrency(concurrency);
        for texts in [&texts, &more, &texts] {
            // Opened again each time, as a later run would.
            let mut store = setting.store();
            let texts = || texts.iter().map(String::as_str);
            let report = embedder.embed(texts(), &mut store).unwrap();
            prop_assert_eq!(report.known + report.computed, report.texts);
            let matrix = store.matrix(texts()).unwrap();
            for (text, row) in texts().zip(matrix.iter()) {
                let expected = if text.is_empty() { vec![0.0; matrix.dim()] } else { model(text, 5) };
                prop_assert_eq!(row, expected);
            }
        }
        let mut asked = setting.asked();
        let count = asked.len();
        asked.sort_unstable();
        asked.dedup();
        prop_assert_eq!(asked.len(), count, "no text is asked for twice");
        prop_assert!(!asked.contains(&String::new()));
    }
}

#[test]
fn a_request_is_openais() {
    let setting = Setting::new(|_, request| ok(&answered(request, 3)));
    let report = setting.embed(&["a", "b", "a", "c"]).unwrap();
    assert_eq!(report, EmbeddingCounts { texts: 3, known: 0, computed: 3 });
    let requests = setting.server.requests();
    assert_eq!((&*requests[0].method, &*requests[0].path), ("POST", "/v1/embeddings"));
    let body = json!({"model": "m", "input": ["a", "b"], "encoding_format": "float"});
    assert_eq!((&requests[0].body, requests.len()), (&body, 2));
}

#[test]
fn what_was_computed_before_a_failure_is_kept_and_the_rest_alone_asked_for() {
    for (status, hint) in [
        ("401 Unauthorized", "REPOFORMER_API_KEY"),
        ("404 Not Found", "name of the model"),
        ("500 Internal Server Error", "log"),
    ] {
        // The third request and all its retries fail; the requests of the next run follow.
        let last = if status.starts_with('5') { 5 } else { 2 };
        let setting = Setting::new(move |number, request| match number {
            n if (2..=last).contains(&n) => refusal(status, "no"),
            _ => ok(&answered(request, 3)),
        });
        let texts = ["a", "b", "c", "d", "e", "f", "g"];
        let error = setting.embed(&texts).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("the server answers {status}")), "{text}");
        assert!(text.contains("; 4 of 7 missing vectors were computed and are kept in "), "{text}");
        assert!(error.hint().unwrap().to_string().contains(hint), "{error}");
        assert!(
            error
                .hint()
                .unwrap()
                .to_string()
                .ends_with("run the command again: only the missing vectors are requested")
        );
        let before = setting.asked().len();
        let report = setting.embed(&texts).unwrap();
        assert_eq!(report, EmbeddingCounts { texts: 7, known: 4, computed: 3 });
        assert_eq!(setting.asked()[before..], ["e", "f", "g"]);
    }
}

#[test]
fn with_several_requests_at_a_time_those_under_way_are_kept() {
    // All four requests are in progress before one is rejected, and the rejection arrives first.
    let all = Barrier::new(4);
    let setting = Setting::new(move |_, request| {
        all.wait();
        if request.input()[0] == "bad" {
            return refusal("400 Bad Request", "too long");
        }
        std::thread::sleep(Duration::from_millis(100));
        ok(&answered(request, 3))
    });
    let texts = ["a", "b", "c", "bad", "d", "e", "f", "g"];
    let embedder = setting.embedder().batch_size(1).concurrency(4);
    let mut store = setting.store();
    let error = embedder.embed(texts, &mut store).unwrap_err();
    assert!(
        error.to_string().contains("400 Bad Request: too long; 3 of 8 missing vectors"),
        "{error}"
    );
    assert!(["a", "b", "c"].iter().all(|text| store.contains(&digest(text))));
    assert_eq!(setting.asked().len(), 4, "nothing new is begun after a failure");
}

#[test]
fn a_server_that_is_too_slow_is_given_up() {
    let (_closed, pass) = gate();
    let setting = Setting::new(move |_, request| {
        pass();
        ok(&answered(request, 3))
    });
    let settings = ConnectionSettings { timeout: Duration::from_millis(50), retries: 1, ..quick() };
    let endpoint = Endpoint::new(&setting.server.url(), settings).unwrap();
    let error = Embedder::new(endpoint, "m").embed(["a"], &mut setting.store()).unwrap_err();
    assert!(
        error.to_string().contains("no complete answer within 50ms; sent 2 times; 0 of 1"),
        "{error}"
    );
}

#[test]
fn answers_that_are_no_vectors_are_refused_with_the_text_they_are_of() {
    let entry = |index: usize, embedding: Value| json!({"index": index, "embedding": embedding});
    let two = |second: Value| json!({"data": [entry(0, json!([1.0, 2.0])), entry(1, second)]});
    for (body, reason) in [
        (json!({"data": [entry(0, json!([1.0]))]}), "1 vectors for 2 texts"),
        (json!({"data": []}), "0 vectors for 2 texts"),
        (json!({"vectors": []}), "no list 'data': {\"vectors\":[]}"),
        (json!([1]), "no list 'data': [1]"),
        (two(json!([1.0])), "text \"b\" has 1 numbers, but the vector of text \"a\" has 2"),
        (two(json!([1.0, null])), "text \"b\" is wrong: number 2 is null"),
        (two(json!([0.0, 0])), "text \"b\" is wrong: all its numbers are 0"),
        (two(Value::Null), "a list of numbers is expected, not null"),
        (
            json!({"data": [entry(0, json!([1.0])), entry(0, json!([2.0]))]}),
            "wrong or repeated 'index': 0",
        ),
        (
            json!({"data": [entry(0, json!([1.0])), entry(2, json!([2.0]))]}),
            "wrong or repeated 'index': 2",
        ),
    ] {
        let setting = Setting::new(move |_, _| ok(&body));
        let error = setting.embed(&["a", "b"]).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.to_string().contains("/v1/embeddings: "), "{error}");
        assert_eq!(setting.server.requests().len(), 1);
        assert_eq!(setting.store().dim(), None);
    }
    let page = Setting::new(|_, _| answer("200 OK", "", "<html>"));
    assert!(page.embed(&["a"]).unwrap_err().to_string().contains("HTML instead of JSON"));
    let nan = Setting::new(|_, _| answer("200 OK", "", "{\"data\": [{\"embedding\": [NaN]}]}"));
    assert!(nan.embed(&["a"]).unwrap_err().to_string().contains("the answer is not JSON"));
}

#[test]
fn servers_without_an_index_answer_in_order() {
    let setting = Setting::new(|_, request| {
        let data: Vec<Value> =
            request.input().iter().map(|text| json!({"embedding": model(text, 3)})).collect();
        ok(&json!({"data": data}))
    });
    setting.embed(&["a", "b"]).unwrap();
    assert_eq!(setting.store().get(&digest("b")).unwrap(), Some(model("b", 3)));
}

#[test]
fn a_model_that_changed_its_size_is_noticed() {
    let setting = Setting::new(|number, request| ok(&answered(request, 3 + number)));
    let error = setting.embed(&["a", "b", "c"]).unwrap_err().to_string();
    assert!(
        error.contains("the new vectors have 4 numbers, but the vectors in")
            && error.contains("have 3; 2 of 3"),
        "{error}"
    );
    let mut other = VectorStore::open(&setting.dir.path().join("other"), "n").unwrap();
    let error = setting.embedder().embed(["a"], &mut other).unwrap_err();
    assert!(error.to_string().ends_with("are from model 'n'"), "{error}");
}

#[test]
fn llama_cpps_own_answer_is_read() {
    // Recorded from llama.cpp's server, with vectors cut to their first three numbers.
    let body = json!({"model": "m", "object": "list", "usage": {"prompt_tokens": 15, "total_tokens": 15}, "data": [
        {"embedding": [0.0021677296608686447, -0.025929288938641548, 0.0035471967421472073], "index": 0, "object": "embedding"},
        {"embedding": [0.5, 0.25, 0.125], "index": 1, "object": "embedding"}]});
    let found = vectors(&body, &["def add(a, b): return a + b", "class A: pass"]).unwrap();
    assert_eq!(found[0], [0.002_167_729_7, -0.025_929_289, 0.003_547_196_7]);
}

#[test]
fn queries_are_asked_for_alone_and_their_times_are_kept() {
    let setting = Setting::new(|_, request| {
        std::thread::sleep(Duration::from_millis(20));
        ok(&answered(request, 3))
    });
    let embed = |texts: &[&str]| {
        let mut times = EmbeddingTimes::open(&setting.dir.path().join("v")).unwrap();
        let mut store = setting.store();
        let texts = texts.iter().copied();
        setting.embedder().embed_timed(texts, &mut store, &mut times).unwrap()
    };
    // A text whose vector is already stored still needs its time.
    setting.embed(&["a", "b"]).unwrap();
    assert_eq!(embed(&["a", "c", "", "c"]), EmbeddingCounts { texts: 2, known: 0, computed: 2 });
    assert_eq!(setting.asked(), ["a", "b", "a", "c"]);
    let requests = setting.server.requests();
    assert_eq!(requests[1..].iter().map(|request| request.input().len()).max(), Some(1));
    let times = EmbeddingTimes::read(&setting.dir.path().join("v"));
    assert_eq!(times.len(), 2);
    assert!(times.values().all(|seconds| (0.02..5.0).contains(seconds)), "{times:?}");
    assert!(times.contains_key(&digest("c")) && !times.contains_key(&digest("b")));
    // The file grows; vectors that are already stored are not requested again.
    assert_eq!(embed(&["a", "b"]), EmbeddingCounts { texts: 2, known: 1, computed: 1 });
    assert_eq!(embed(&["c", "b", "a"]), EmbeddingCounts { texts: 3, known: 3, computed: 0 });
    assert_eq!(setting.asked().len(), 5);
}

#[test]
fn an_answer_far_longer_than_its_vectors_is_not_read() {
    let setting = Setting::new(|_, request| {
        let mut answer = answered(request, 3);
        answer["padding"] = "x".repeat(18 << 20).into();
        ok(&answer)
    });
    let error = setting.embed(&["a"]).unwrap_err();
    assert!(error.to_string().contains("longer than 17301504 bytes"), "{error}");
    assert_eq!(setting.server.requests().len(), 1);
}

/// The server has the key, here in its URL, and may repeat it in vectors, as numbers or as the bytes of numbers.
#[test]
fn a_vector_that_spells_the_key_is_refused() {
    let key = b"0123456789abcdef";
    let numbers: Vec<f64> = key.iter().copied().map(f64::from).collect();
    // Equal to the key once the numbers are rounded for storage.
    let near = numbers.iter().map(|number| number + 1e-9).collect();
    let negative = numbers.iter().map(|number| -number).collect();
    let words = key.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let narrow: Vec<f64> = words.map(f64::from).collect();
    let negative_words = narrow.iter().map(|number| -number).collect();
    for vector in [numbers, near, negative, narrow, negative_words] {
        let server = TestServer::start(move |_, _| {
            ok(&json!({"data": [{"index": 0, "embedding": vector}]}))
        });
        let url = format!("{}?api-key=0123456789abcdef", server.url());
        let endpoint = Endpoint::new(&url, ConnectionSettings::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut store = VectorStore::open(&dir.path().join("v"), "m").unwrap();
        let refused = Embedder::new(endpoint, "m").embed(["a"], &mut store).unwrap_err();
        assert!(
            refused.to_string().contains("the server's answer contains the API key"),
            "{refused}"
        );
        assert!(!store.contains(&digest("a")));
    }
}
