use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use repoformer_store::error::Error;

use super::*;
use crate::task::cross_file::CrossFileFragment;

const LARGE: Budget = Budget { total: 100_000, left: None, right: None, cross_file: None };
const LEFT: ContextSelection = include(false, false);
const LEFT_RIGHT: ContextSelection = include(true, false);
const LEFT_CROSS: ContextSelection = include(false, true);
const ALL: ContextSelection = include(true, true);

const fn include(right: bool, cross_file: bool) -> ContextSelection {
    ContextSelection { right, cross_file }
}

fn style(name: &str) -> Style {
    name.parse().unwrap()
}

fn fixture(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("tests/fixtures/tokenizers");
    folder.join(format!("{name}.json"))
}

/// Returns the tokenizers, each with Hugging Face's library for the same file if it has one.
pub(super) fn tokenizers() -> &'static [(Tokenizer, Option<tokenizers::Tokenizer>)] {
    static ALL: OnceLock<Vec<(Tokenizer, Option<tokenizers::Tokenizer>)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let files = ["starcoder", "qwen", "codellama", "first_part_differs"].map(fixture);
        let read = |path: PathBuf| {
            let mut oracle = tokenizers::Tokenizer::from_file(&path).unwrap();
            oracle.with_truncation(None).unwrap();
            (Tokenizer::open(&path).unwrap(), Some(oracle))
        };
        let own = [Tokenizer::p50k_base(), Tokenizer::words()].map(|tokenizer| (tokenizer, None));
        own.into_iter().chain(files.into_iter().map(read)).collect()
    })
}

fn fragment(path: &str, text: &str) -> CrossFileFragment {
    CrossFileFragment { path: path.into(), text: text.into(), score: None }
}

fn two_files() -> CrossFile {
    let fragments = vec![fragment("b.py", "b = 2\n\nbb = 3"), fragment("c/d.py", "d = 4")];
    CrossFile::new(fragments, Language::Python)
}

fn parts(cross_file: &CrossFile) -> Parts<'_> {
    Parts {
        repository: "demo",
        path: "a.py",
        left: "L1\nL2 = ",
        right: "\nR1\n",
        cross_file,
        language: Language::Python,
    }
}

fn text(name: &str, include: ContextSelection) -> String {
    let context = two_files();
    let style = style(name).including(include);
    let filled = style.fill(&parts(&context), &LARGE, &Tokenizer::words());
    filled.unwrap().text
}

const COMMENTS: &str = "# Here are some relevant code fragments from other files of the repo:\n\n\
    # the below code fragment can be found in:\n# b.py\n# b = 2\n# \n# bb = 3\n\n\
    # the below code fragment can be found in:\n# c/d.py\n# d = 4\n\n";

/// Layouts of Repoformer's programs, read and applied by hand: `repo_eval/eval_vllm.py` (starcoder), `eval_hf.py` (its
/// baselines, codegen, starcoder-released), `eval_vllm_repoformer.py` (repoformer) and
/// `finetuning/preprocess/preprocess_repoformer.py` (repoformer-released).
#[test]
fn the_layouts_of_the_released_programs() {
    let (l, r, cc) = ("L1\nL2 = ", "\nR1\n", COMMENTS);
    for name in ["starcoder", "starcoder-released"] {
        let in_file = format!("<fim_prefix>{l}<fim_suffix>{r}<fim_middle>");
        assert_eq!(text(name, LEFT_RIGHT), in_file);
        assert_eq!(text(name, LEFT), format!("<fim_prefix>{l}<fim_suffix><fim_middle>"));
    }
    let starcoder = format!("<fim_prefix>{l}<fim_suffix>{r}\n\n{cc}<fim_middle>");
    assert_eq!(text("starcoder", ALL), starcoder);
    let released = format!("<fim_prefix>{cc}{l}<fim_suffix>{r}<fim_middle>");
    assert_eq!(text("starcoder-released", ALL), released);
    let released = format!("<fim_prefix>{l}<fim_suffix>{cc}<fim_middle>");
    assert_eq!(text("starcoder-released", LEFT_CROSS), released);

    let abstaining = format!("<fim_prefix>{l}<fim_suffix>{r}<eof><fim_middle>");
    assert_eq!(text("repoformer", LEFT_RIGHT), abstaining);
    let retrieving = format!("<fim_prefix>{l}<fim_suffix>{r}<eof><cc>\n\n{cc}<fim_middle>");
    assert_eq!(text("repoformer", ALL), retrieving);
    let retrieving = format!("<fim_prefix>{l}<fim_suffix>{r}<end_rc><cfc_info>{cc}<fim_middle>");
    assert_eq!(text("repoformer-released", ALL), retrieving);

    assert_eq!(text("codegen", ALL), format!("{r}{cc}{l}"));
    assert_eq!(text("codegen", LEFT_RIGHT), format!("{r}{l}"));
    // CrossCodeEval's scripts/vllm_inference.py.
    assert_eq!(text("plain", ALL), format!("{cc}\n{l}"));
    assert_eq!(text("plain", LEFT_RIGHT), l);
}

/// Layouts of the model cards and papers that the styles' files name, applied by hand.
#[test]
fn the_layouts_of_the_models() {
    let (l, r, cc) = ("L1\nL2 = ", "\nR1\n", COMMENTS);
    assert_eq!(text("codellama", ALL), format!("<PRE> {cc}\n{l} <SUF>{r} <MID>"));
    assert_eq!(text("codellama", LEFT_RIGHT), format!("<PRE> {l} <SUF>{r} <MID>"));
    let deepseek = format!("<｜fim▁begin｜>{l}<｜fim▁hole｜>{r}<｜fim▁end｜>");
    assert_eq!(text("deepseek-coder", LEFT_RIGHT), deepseek);
    assert_eq!(text("codestral", LEFT_RIGHT), format!("[SUFFIX]{r}[PREFIX]{l}"));
    assert_eq!(text("codestral", LEFT_CROSS), format!("[SUFFIX][PREFIX]{cc}\n{l}"));

    let qwen = "<|repo_name|>demo\n<|file_sep|>b.py\nb = 2\n\nbb = 3\n<|file_sep|>c/d.py\nd = 4\n<|file_sep|>a.py\n";
    let hole = format!("<|fim_prefix|>{l}<|fim_suffix|>{r}<|fim_middle|>");
    assert_eq!(text("qwen2.5-coder", ALL), format!("{qwen}{hole}"));
    assert_eq!(text("qwen2.5-coder", LEFT_CROSS), format!("{qwen}{l}"));
    let alone = format!("<|repo_name|>demo\n<|file_sep|>a.py\n{hole}");
    assert_eq!(text("qwen2.5-coder", LEFT_RIGHT), alone);

    let other = "<repo_name>demo<file_sep>b.py\nb = 2\n\nbb = 3<file_sep>c/d.py\nd = 4<file_sep>";
    let hole = format!("<fim_prefix>a.py\n{l}<fim_suffix>{r}<fim_middle>");
    assert_eq!(text("starcoder2", ALL), format!("{other}{hole}"));
    assert_eq!(text("starcoder2", LEFT_CROSS), format!("{other}a.py\n{l}"));
    assert_eq!(text("starcoder2", LEFT), format!("<repo_name>demo<file_sep>a.py\n{l}"));
}

#[test]
fn what_is_not_there_leaves_no_trace() {
    let nothing = CrossFile::default();
    let parts = Parts { repository: "", path: "", ..parts(&nothing) };
    let filled = |name| {
        let filled = style(name).fill(&parts, &LARGE, &Tokenizer::words());
        let filled = filled.unwrap();
        assert_eq!((filled.cross_file_tokens, filled.fragments), (0, 0));
        filled.text
    };
    let hole = "<|fim_prefix|>L1\nL2 = <|fim_suffix|>\nR1\n<|fim_middle|>";
    assert_eq!(filled("qwen2.5-coder"), hole);
    assert_eq!(filled("repoformer"), text("repoformer", LEFT_RIGHT));
    assert_eq!(filled("starcoder"), text("starcoder", LEFT_RIGHT));
    assert_eq!(filled("plain"), "L1\nL2 = ");
}

#[test]
fn every_bundled_style_says_what_it_is() {
    for name in Style::names() {
        let style = style(name);
        assert_eq!(style.name(), name);
        assert!(!style.about().is_empty() && style.shows_cross_file());
        assert_eq!(style.shows_right(), name != "plain");
        assert_eq!(style.stop().is_empty(), name == "plain");
        assert_ne!(style.digest(), style.clone().including(LEFT).digest());
    }
}

#[test]
fn unknown_special_tokens_are_named() {
    let starcoder = Tokenizer::open(&fixture("starcoder")).unwrap();
    assert!(style("starcoder").unknown_specials(&starcoder).is_empty());
    assert_eq!(style("repoformer").unknown_specials(&starcoder), ["<eof>", "<cc>"]);
    let qwen = Tokenizer::open(&fixture("qwen")).unwrap();
    assert!(style("qwen2.5-coder").unknown_specials(&qwen).is_empty());
    assert!(style("plain").unknown_specials(&qwen).is_empty());
}

#[test]
fn a_faulty_style_names_its_line() {
    let nested = format!("template = '{{left}}{}'", "{#right}".repeat(100_000));
    let many = format!("template = '{{left}}'\nspecials = ['<a>'{}]", ", '<b>'".repeat(64));
    for (text, message, hint) in [
        ("stop = []", "1: 'template' is missing", "add one, such as template = "),
        ("\n\ntemplate = {", "3: ", ""),
        ("template = \"{left}\"\nstop = [\"a\"\n", "", ""),
        ("\ntemplate = 3", "2: 'template' must be a text, not integer", ""),
        ("template = '{left}'\nstop = ['a',\n 3]", "3: 'stop' must be a list of texts, not", ""),
        ("template = '{left}'\nstop = ['']", "2: 'stop' has an empty text", ""),
        ("template = '''\n{path}\n{left}\n{rihgt}'''", "4: unknown slot 'rihgt'", "'right'"),
        ("template = '{left'", "1: a '{' without its '}'", "twice"),
        ("template = 'a}{left}'", "1: a '}' without its '{'", "twice"),
        ("template = '{#right}{left}'", "1: the section 'right' is not closed", "{/right}"),
        (
            "template = '{#right}{left}{/path}'",
            "1: {/path} closes a section that is not open",
            "{/right}",
        ),
        (
            "template = '{#left}x{/left}'",
            "1: {#left}: 'left' is never absent, so it needs no section",
            "",
        ),
        ("template = '{left}'\nfragment = 'x'", "2: {text} is missing", "{path}"),
        ("template = '{left}'\nfragment = '{left}'", "2: unknown slot 'left'", ""),
        (
            "template = '{left}'\nspecials = ['<a>']",
            "2: the template does not use the special token '<a>'",
            "",
        ),
        ("template = '{right}'", "1: the template has no {left} ", "left context"),
        (
            "template = '{#right}{left}{/right}'",
            "1: the template has no {left} if there is cross-file but no right context",
            "",
        ),
        (
            "template = '{left}{#path}{left}{/path}'",
            "1: the template has more than one {left} if there is right and cross-file context",
            "sections",
        ),
        ("template = '{left}'\nstops = []", "2: unknown key 'stops'", "'stop'"),
        (&nested, "1: more than 16 sections in each other", ""),
        (&many, "2: more than 64 special tokens", ""),
    ] {
        let error = file::read(text, Path::new("own.toml"), "own").unwrap_err();
        assert!(error.to_string().starts_with(&format!("own.toml:{message}")), "{error}");
        let found = error.hint().unwrap_or_default().to_string();
        assert!(found.contains(hint), "{error}: {found}");
    }
}

#[test]
fn a_style_is_named_or_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "template = '{{{left}}}'").unwrap();
    let own = style(&path.display().to_string());
    assert_eq!(own.name(), "mine");
    let context = CrossFile::default();
    let filled = own.fill(&parts(&context), &LARGE, &Tokenizer::words()).unwrap();
    assert_eq!(filled.text, "{L1\nL2 = }");
    let unknown = "star-coder".parse::<Style>().unwrap_err();
    assert_eq!(unknown.hint(), Some("did you mean 'starcoder'?".into()));
    std::fs::write(&path, b"\xff").unwrap();
    assert!(Style::open(&path).unwrap_err().to_string().contains("mine.toml: cannot read"));
}

/// Computed by hand, in words: `<fim_prefix>` and the other special tokens are 3 words each, so the frame has 9.
#[test]
fn each_part_is_cut_to_its_own_budget() {
    let context = two_files();
    let whole = parts(&context);
    let budget = Budget { total: 20, left: Some(2), right: Some(1), cross_file: Some(5) };
    let filled = style("starcoder").fill(&whole, &budget, &Tokenizer::words()).unwrap();
    let cc = "# Here are some relevant";
    let expected = format!("<fim_prefix>\nL2 = <fim_suffix>\nR1\n\n\n{cc} <fim_middle>");
    assert_eq!(filled.text, expected);
    assert_eq!((filled.left_tokens, filled.right_tokens, filled.cross_file_tokens), (2, 1, 5));
    assert_eq!((filled.tokens, filled.fragments), (17, 0));
    assert_eq!(filled.stop, style("starcoder").stop());

    // None of the left context fits next to the rest: 9 + 1 + 5.
    let budget = Budget { total: 15, ..budget };
    let error = style("starcoder").fill(&whole, &budget, &Tokenizer::words()).unwrap_err();
    let reason = "the right context (1 tokens) and the cross-file context (5 tokens) leave no room \
                  for the left context: the rest of the prompt has 15 tokens, and the limit is 15";
    assert_eq!(error.to_string(), reason);
    assert!(error.hint().is_some());
    let uncut = Budget { right: None, cross_file: Some(0), total: 9, ..budget };
    let error = style("starcoder").fill(&whole, &uncut, &Tokenizer::words()).unwrap_err();
    assert!(error.to_string().starts_with("the right context (1 tokens) leaves no room"));
    // Blanks, which are not words, do not help either.
    let blank = Parts { left: " \n\t", ..whole };
    let tight = Budget { total: 14, ..budget };
    assert!(style("starcoder").fill(&blank, &tight, &Tokenizer::words()).is_err());
    // A hole at the start of its file needs no room for a left context.
    let first = Parts { left: "", ..whole };
    let filled = style("starcoder").fill(&first, &budget, &Tokenizer::words()).unwrap();
    assert_eq!((filled.tokens, filled.left_tokens), (15, 0));
}

/// Computed by hand, in words: a frame `<file_sep>b.py\n` has 6 tokens, the text of b.py 6, and the text of c/d.py 3.
#[test]
fn files_are_cut_in_order() {
    let context = two_files();
    let shown = |tokens| {
        let budget = Budget { cross_file: Some(tokens), ..LARGE };
        let filled = style("starcoder2").fill(&parts(&context), &budget, &Tokenizer::words());
        let filled = filled.unwrap();
        let start = filled.text.strip_prefix("<repo_name>demo").unwrap();
        let end = start.find("<file_sep><fim_prefix>").unwrap();
        (start[..end].to_owned(), filled.cross_file_tokens, filled.fragments)
    };
    assert_eq!(shown(6), (String::new(), 0, 0));
    assert_eq!(shown(8), ("<file_sep>b.py\nb = ".into(), 8, 1));
    assert_eq!(shown(19), ("<file_sep>b.py\nb = 2\n\nbb = 3".into(), 12, 1));
    let both = "<file_sep>b.py\nb = 2\n\nbb = 3<file_sep>c/d.py\nd = ";
    assert_eq!(shown(22), (both.into(), 22, 2));
    assert_eq!(shown(23).1, 23);
}

#[test]
fn files_are_read_from_a_text_where_a_task_has_that_alone() {
    let context = CrossFile { fragments: vec![], ..two_files() };
    let filled = style("qwen2.5-coder").fill(&parts(&context), &LARGE, &Tokenizer::words());
    assert_eq!(filled.unwrap().text, text("qwen2.5-coder", ALL));
    let context = CrossFile { text: "# see b.py\n".into(), fragments: vec![] };
    let error = style("qwen2.5-coder").fill(&parts(&context), &LARGE, &Tokenizer::words());
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("prompt-style: this style shows the cross-file context as files"),
        "{error}"
    );
    // As comments, any text is shown.
    let filled = style("plain").fill(&parts(&context), &LARGE, &Tokenizer::words());
    assert_eq!(filled.unwrap().text, "# see b.py\n\nL1\nL2 = ");
}

#[test]
fn fragments_that_are_shown_are_counted() {
    let context = two_files();
    let shown = |tokens| {
        let budget = Budget { cross_file: Some(tokens), ..LARGE };
        let filled = style("plain").fill(&parts(&context), &budget, &Tokenizer::words());
        filled.unwrap().fragments
    };
    // In words: the head is 14 tokens, `# the below … in:` 10, `# b.py` 4, `# b = 2` 4.
    assert_eq!([shown(29), shown(30), shown(36), shown(1000)], [0, 1, 1, 2]);
}

#[test]
fn markers_in_code_are_code() {
    let tokenizer = Tokenizer::open(&fixture("starcoder")).unwrap();
    let context = CrossFile::default();
    let parts = Parts { left: "x = '<fim_middle>'\ny = 1\n", ..parts(&context) };
    let filled = style("starcoder").fill(&parts, &LARGE, &tokenizer).unwrap();
    let expected = 3 + tokenizer.count(parts.left) + tokenizer.count(parts.right);
    assert_eq!(filled.tokens, expected);
}

/// A left context far longer than any budget: it fills the remaining room to the last token.
#[test]
fn the_left_context_takes_all_that_remains() {
    let left = "def read(path):\n    return open(path).read()\n".repeat(5_000);
    let context = two_files();
    for (tokenizer, _) in tokenizers() {
        let parts = Parts { left: &left, ..parts(&context) };
        let budget = Budget { total: 512, left: None, right: Some(64), cross_file: Some(128) };
        let filled = style("starcoder").fill(&parts, &budget, tokenizer).unwrap();
        assert!((509..=512).contains(&filled.tokens), "{tokenizer}: {}", filled.tokens);
    }
}

#[test]
fn a_prompt_whose_context_was_cut_in_a_line_is_split() {
    let slots = style("plain").split(
        "# Here are some relevant code fragments from other files of the repo:\n\n\
         # the below code fragment can be found in:\n# b.py\n# b =\nL1\n# L2",
    );
    let slots = slots.unwrap();
    assert!(slots.cross_file.ends_with("# b ="));
    assert_eq!(slots.left, "L1\n# L2");
    assert_eq!(style("plain").split("x = 1").unwrap().left, "x = 1");
    assert_eq!(style("codegen").split("R1\nL1").unwrap().left, "R1\nL1");
}

/// Returns code without special tokens.
fn code(parts: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "    return self.path\n", "\n\n", "\r\n", "\t", "  ", "# note\n", "漢字", "e\u{301}", "😀",
        "0123456789",
    ]);
    let part = prop_oneof![3 => known.prop_map(str::to_owned), 1 => "[a-z_=.()]{1,12}"];
    prop::collection::vec(part, parts).prop_map(|parts| parts.concat())
}

/// Returns code that sometimes contains the characters of special tokens.
pub(super) fn any_code() -> impl Strategy<Value = String> {
    let markers = ["<fim_prefix>", "<fim_middle>", "<|file_sep|>", "<PRE>", "<|endoftext|>"];
    let marker = prop::sample::select(markers.to_vec());
    let marked =
        (code(0..20), marker, code(0..20)).prop_map(|(a, marker, b)| [&a, marker, &b].concat());
    prop_oneof![2 => code(0..60), 1 => marked]
}

fn context() -> impl Strategy<Value = CrossFile> {
    let files = prop::collection::vec(("[a-z]{1,8}/[a-z]{1,8}\\.py", code(0..20)), 0..4);
    files.prop_map(|files| {
        let files = files.iter().map(|(path, text)| fragment(path, text));
        CrossFile::new(files.collect(), Language::Python)
    })
}

fn styles() -> impl Strategy<Value = Style> {
    let includes = (any::<bool>(), any::<bool>());
    let names: Vec<_> = Style::names().collect();
    (prop::sample::select(names), includes)
        .prop_map(|(name, (right, cross_file))| style(name).including(include(right, cross_file)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_prompt_is_never_over_its_budget(
        style in styles(),
        (left, right, context) in (any_code(), any_code(), context()),
        total in 1_usize..300,
        (left_budget, right_budget, cross_budget) in (
            prop::option::of(0_usize..80), prop::option::of(0_usize..80), prop::option::of(0_usize..80),
        ),
    ) {
        let parts = Parts { left: &left, right: &right, ..parts(&context) };
        let budget = Budget { total, left: left_budget, right: right_budget, cross_file: cross_budget };
        for (tokenizer, oracle) in tokenizers() {
            let filled = match style.fill(&parts, &budget, tokenizer) {
                Ok(filled) => filled,
                Err(Error::Room { .. }) => continue,
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            };
            prop_assert!(filled.tokens <= total);
            prop_assert!(left_budget.is_none_or(|budget| filled.left_tokens <= budget));
            prop_assert!(right_budget.is_none_or(|budget| filled.right_tokens <= budget));
            prop_assert!(cross_budget.is_none_or(|budget| filled.cross_file_tokens <= budget));
            // A program that reads the text and takes markers in code for special tokens never counts more tokens.
            if let Some(oracle) = oracle {
                let counted = oracle.encode(&*filled.text, false).unwrap().len() + tokenizer.around();
                prop_assert!(counted <= filled.tokens, "{}: {} > {}", tokenizer, counted, filled.tokens);
                let plain = ![&left, &right].iter().any(|code| code.contains('<'));
                prop_assert!(!plain || counted == filled.tokens);
            }
        }
    }

    #[test]
    fn what_is_kept_is_the_end_of_the_left_and_the_start_of_the_rest(
        style in styles(),
        (left, right, context) in (code(1..60), code(0..60), context()),
        total in 40_usize..300,
        (right_budget, cross_budget) in (0_usize..80, 0_usize..80),
    ) {
        let parts = Parts { left: &left, right: &right, ..parts(&context) };
        let budget = Budget { total, left: None, right: Some(right_budget), cross_file: Some(cross_budget) };
        // If no special token separates two parts, a part that was cut cannot be distinguished from the next.
        prop_assume!(!["plain", "codegen"].contains(&style.name()));
        for (tokenizer, _) in tokenizers() {
            let Ok(filled) = style.fill(&parts, &budget, tokenizer) else { continue };
            let Some(slots) = style.split(&filled.text) else {
                return Err(TestCaseError::fail(format!("not split: {}", filled.text)));
            };
            let shown_right = if style.include().right { slots.right } else { "" };
            if style.include().cross_file && style.fragment.is_none() && !context.is_empty() {
                // The cross-file context is found together with the text next to it.
                let comments = tokenizer.keep_start(&[style.lead.as_str(), &context.text].concat(), cross_budget).to_owned();
                prop_assert!(comments.trim().is_empty() || filled.text.contains(&comments));
            } else {
                prop_assert!(left.ends_with(slots.left), "{:?} of {:?}", slots.left, left);
                prop_assert!(right.starts_with(shown_right));
                prop_assert_eq!(tokenizer.count(slots.left), filled.left_tokens);
                prop_assert_eq!(tokenizer.count(shown_right), filled.right_tokens);
            }
        }
    }

    #[test]
    fn a_whole_prompt_comes_apart_as_it_went_in(
        style in styles(),
        (left, right, context) in (code(1..40), code(0..40), context()),
    ) {
        let parts = Parts { left: &left, right: &right, ..parts(&context) };
        let filled = style.fill(&parts, &LARGE, &Tokenizer::words()).unwrap();
        let slots = style.split(&filled.text).unwrap();
        let ContextSelection { right: with_right, cross_file } = style.include();
        let cross_file = cross_file && !context.is_empty();
        if with_right && style.name() == "codegen" && !cross_file {
            prop_assert_eq!(slots.left, [right, left].concat());
        } else {
            prop_assert_eq!(slots.left, left);
            prop_assert_eq!(slots.right, if with_right && style.shows_right() { &*right } else { "" });
        }
        if !cross_file {
            prop_assert_eq!(slots.cross_file, "");
        } else if style.fragment.is_none() {
            prop_assert_eq!(slots.cross_file, context.text);
        }
    }
}
