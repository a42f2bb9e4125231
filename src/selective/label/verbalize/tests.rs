use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::prompt::style::DecisionFrame;
use crate::prompt::style::{Budget, Parts, Style};
use crate::task::cross_file::CrossFile;
use crate::text::language::Language;

fn tokenizer(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers");
    folder.join(format!("{name}.json"))
}

fn settings(style: &str, max_tokens: usize, max_cross_file_tokens: usize) -> VerbalizeSettings {
    let style: Style = style.parse().unwrap();
    VerbalizeSettings {
        frame: DecisionFrame::of(&style, None, None).unwrap(),
        max_tokens,
        max_cross_file_tokens,
        end: None,
        lambda: 2.0,
        held_out: Proportions { validation: 0.0, test: 0.0 },
        seed: 0,
    }
}

fn encoder(name: &str, settings: &VerbalizeSettings) -> Encoder {
    let mut specials = settings.frame.specials();
    specials.extend(settings.end.as_deref());
    Encoder::open(&tokenizer(name), &specials).unwrap()
}

fn label(left: &str, target: &str, right: &str, cross_file: &str, positive: bool) -> Label {
    let record = json!({
        "metadata": {"task_id": "r/a.py/3_5", "filename": "r/a.py", "start_i": 3, "end_i": 5},
        "prompt": left, "groundtruth": target, "right_context": right, "crossfile_context": cross_file, "label": positive,
    });
    let serde_json::Value::Object(record) = record else { panic!() };
    Label::read(Path::new("l.jsonl"), 1, record).unwrap()
}

fn sequence(label: &Label, encoder: &Encoder, settings: &VerbalizeSettings) -> Sequence {
    Sequence::of(label, "r", encoder, settings).unwrap().unwrap()
}

/// The two forms of section 3.3, token by token: what is supervised is the token after `<eof>` and the target.
#[test]
fn what_a_sequence_spells_and_teaches() {
    let mut settings = settings("starcoder", 2048, 512);
    let encoder = encoder("starcoder", &settings);
    let spelled = |sequence: &Sequence, is: &dyn Fn(usize) -> bool| {
        let ids = sequence.ids.iter().enumerate().filter(|(at, _)| is(*at));
        let ids: Vec<u32> = ids.map(|(_, id)| *id).collect();
        encoder.decode(&ids).unwrap()
    };
    let contexts = ("x = 1\n", "y = x\n", "\nz = y", "# b = 2\n");
    for (positive, text, decision) in [
        (false, "<fim_prefix>x = 1\n<fim_suffix>\nz = y<eof><fim_middle>y = x\n", "<fim_middle>"),
        (
            true,
            "<fim_prefix>x = 1\n<fim_suffix>\nz = y<eof><cc># b = 2\n<fim_middle>y = x\n",
            "<cc>",
        ),
    ] {
        let (left, target, right, cross_file) = contexts;
        let label = label(left, target, right, cross_file, positive);
        let sequence = sequence(&label, &encoder, &settings);
        assert_eq!(sequence.text, text);
        assert_eq!(encoder.decode(&sequence.ids).unwrap(), text);
        assert_eq!(spelled(&sequence, &|at| sequence.is_decision(at)), decision);
        assert_eq!(spelled(&sequence, &|at| sequence.is_completion(at)), target);
        assert_eq!(sequence.cut, [false; 3]);
        // λ·L_eval + L_gen, L_gen a mean over the target's tokens.
        let weights = sequence.weights(2.0);
        assert_eq!(weights[sequence.decision], 2.0);
        let of_target = 1.0 / encoder.tokenizer().count(target) as f32;
        assert!(weights[sequence.completion..].iter().all(|w| *w == of_target));
        assert!((weights.iter().sum::<f32>() - 3.0).abs() < 1e-5);
        let row = Row::of(&sequence, 2.0);
        for (at, id) in sequence.ids.iter().enumerate() {
            let taught = sequence.is_decision(at) || sequence.is_completion(at);
            let id = if taught { i64::from(*id) } else { -100 };
            assert_eq!(row.labels[at], id);
            assert_eq!(u8::from(taught), row.eval_mask[at] + row.gen_mask[at]);
        }
    }
    // A token to stop with is taught as the target is.
    settings.end = Some("<|endoftext|>".into());
    let label = label("x = 1\n", "y = x\n", "", "", false);
    let sequence = sequence(&label, &encoder, &settings);
    assert_eq!(spelled(&sequence, &|at| sequence.is_completion(at)), "y = x\n<|endoftext|>");
}

/// 100 tokens less 10 of the target, 20 of the cross-file context and 5 special ones leave 65: 21 to the right, 44 to the left.
/// Each `z` on its own line is two tokens of the fixture, `z` and the newline.
#[test]
fn contexts_share_two_to_one_what_the_others_leave() {
    let settings = settings("starcoder", 100, 20);
    let encoder = encoder("starcoder", &settings);
    let count = |text: &str| encoder.tokenizer().count(text);
    let lines = |n: usize| "z\n".repeat(n);
    assert_eq!((count(&lines(5)), count(&lines(50))), (10, 100));
    let kept = |left: usize, right: usize, positive: bool| {
        let label = label(&lines(left), &lines(5), &lines(right), &lines(50), positive);
        let sequence = sequence(&label, &encoder, &settings);
        let rest = sequence.text.strip_prefix("<fim_prefix>").unwrap();
        let (left, rest) = rest.split_once("<fim_suffix>").unwrap();
        let (right, _) = rest.split_once("<eof>").unwrap();
        (count(left), count(right), sequence.ids.len(), sequence.cut)
    };
    assert_eq!(kept(50, 50, true), (44, 21, 100, [true; 3]));
    // The same without the 21 tokens that the positive form has more.
    assert_eq!(kept(50, 50, false), (44, 21, 79, [true, true, false]));
    // What one does not need the other has.
    assert_eq!(kept(50, 5, true), (55, 10, 100, [true, false, true]));
    assert_eq!(kept(10, 50, false), (20, 45, 79, [false, true, false]));
}

#[test]
fn what_cannot_be_a_sequence_says_why() {
    let settings = settings("starcoder", 40, 10);
    let encoder = encoder("starcoder", &settings);
    let why = |label: &Label| {
        let made = Sequence::of(label, "r", &encoder, &settings).unwrap();
        made.unwrap_err()
    };
    let long = "z\n".repeat(20);
    assert_eq!(why(&label("x", &long, "", "", false)), LeftOut::TooLong);
    assert_eq!(why(&label("x", "", "", "", false)), LeftOut::NoTarget);
    assert_eq!(why(&label("x", "y", "", "", true)), LeftOut::NoCrossFile);
    let mut unjudged = label("x", "y", "", "# b\n", true);
    (unjudged.label, unjudged.es_rg1) = (None, Some(1.0));
    assert_eq!(why(&unjudged), LeftOut::NotJudged);
    // The released program's records have the similarities alone.
    for (without, positive) in [(0.5, true), (1.0, false)] {
        unjudged.es_infile = Some(without);
        let made = sequence(&unjudged, &encoder, &settings);
        assert_eq!(made.positive, positive);
    }
}

/// A trained model's prompt is its training sequence up to the target.
#[test]
fn the_style_beside_the_sequences_gives_their_prompts() {
    for (name, file) in [
        ("starcoder", "starcoder"),
        ("starcoder2", "starcoder"),
        ("repoformer", "starcoder"),
        ("repoformer-released", "starcoder"),
        ("qwen2.5-coder", "qwen"),
        ("deepseek-coder", "qwen"),
        ("codellama", "codellama"),
    ] {
        let settings = settings(name, 2048, 512);
        let encoder = encoder(file, &settings);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prompt-style.toml");
        std::fs::write(&path, settings.frame.to_style_file()).unwrap();
        let style = Style::open(&path).unwrap();
        assert_eq!(DecisionFrame::of(&style, None, None).unwrap(), settings.frame);
        for positive in [false, true] {
            let label = label("x = {1}\n", "y", "\nz", "# b = 2\n", positive);
            let none = CrossFile::default();
            let parts = Parts {
                repository: "",
                path: "",
                left: &label.prompt,
                right: &label.right_context,
                cross_file: if positive { &label.cross_file } else { &none },
                language: Language::Python,
            };
            let budget = Budget { total: 2048, left: None, right: None, cross_file: None };
            let filled = style.fill(&parts, &budget, encoder.tokenizer()).unwrap();
            let text = sequence(&label, &encoder, &settings).text;
            let begin = encoder.decode(encoder.before()).unwrap();
            assert_eq!(text, format!("{begin}{}y", filled.text), "{name}");
        }
    }
    for name in ["plain", "codegen", "codestral"] {
        let style: Style = name.parse().unwrap();
        assert!(DecisionFrame::of(&style, None, None).is_err(), "{name}");
    }
    let style: Style = "starcoder".parse().unwrap();
    assert!(DecisionFrame::of(&style, Some("<cc>"), None).is_err());
    let renamed = DecisionFrame::of(&style, Some("<end_rc>"), Some("<cfc_info>")).unwrap();
    assert_eq!((renamed.eof(), renamed.cc()), ("<end_rc>", "<cfc_info>"));
}

fn odd_text() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "def read(path):\n",
        "\r\n",
        "\t",
        "  ",
        "<eof>",
        "<cc>",
        "<fim_prefix>",
        "<fim_middle>",
        "<|endoftext|>",
        "漢字",
        "e\u{301}",
        "😀",
        "\u{feff}",
        "\u{0}",
        "# --------\n",
        "0123456789",
    ]);
    let part =
        prop_oneof![3 => known.prop_map(str::to_owned), 1 => "\\PC{0,6}", 1 => "[a-z_]{1,12}"];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever the texts hold: the tokens decode to the text and are at most as many as asked for, each special token stands where
    /// it was put and nowhere else, and the current file is the same whatever the label.
    #[test]
    fn odd_texts_come_back(
        (left, right, cross_file) in (odd_text(), odd_text(), odd_text()), target in odd_text(), max_tokens in 20_usize..200,
    ) {
        let settings = settings("starcoder", max_tokens, 30);
        let encoder = encoder("starcoder", &settings);
        let made = [false, true].map(|positive| {
            let label = label(&left, &target, &right, &cross_file, positive);
            Sequence::of(&label, "r", &encoder, &settings).unwrap()
        });
        for sequence in made.iter().flatten() {
            prop_assert_eq!(encoder.decode(&sequence.ids).unwrap(), &*sequence.text);
            prop_assert!(sequence.ids.len() <= max_tokens);
            for special in settings.frame.specials() {
                let id = encoder.tokenizer().special(special);
                let found = sequence.ids.iter().filter(|of| Some(**of) == id).count();
                prop_assert_eq!(found, usize::from(special != "<cc>" || sequence.positive), "{}", special);
            }
            let of_target = encoder.decode(&sequence.ids[sequence.completion..]).unwrap();
            prop_assert_eq!(of_target, &*target);
        }
        if let [Ok(negative), Ok(positive)] = &made {
            prop_assert_eq!(&negative.ids[..negative.decision], &positive.ids[..positive.decision]);
        }
    }
}

/// By the counts of Python's package tokenizers for the same files: `<s>` begins CodeLlama's prompts, NFC joins what was apart.
#[test]
fn tokenizers_that_are_no_byte_level_ones() {
    let settings_llama = settings("codellama", 2048, 512);
    let llama = encoder("codellama", &settings_llama);
    assert_eq!(llama.before(), [1]);
    let made = sequence(&label("x", "y", "", "", false), &llama, &settings_llama);
    assert!(made.text.starts_with("<s><PRE> x"), "{}", made.text);
    assert_eq!(made.ids[0], 1);
    let settings_qwen = settings("qwen2.5-coder", 2048, 512);
    let qwen = encoder("qwen", &settings_qwen);
    assert!(qwen.before().is_empty());
    let made = sequence(&label("e\u{301}", "y", "", "", false), &qwen, &settings_qwen);
    assert!(qwen.decode(&made.ids).unwrap().contains("\u{e9}"), "composed");
}

#[test]
fn no_repository_and_no_instance_is_for_two() {
    let found = |names: usize| {
        let mut found = Occurrences::default();
        for name in 0..names {
            found.note([name as u8; 16], &format!("r{name}"));
        }
        // The same instance in every repository.
        (0..names).for_each(|name| found.note([255; 16], &format!("r{name}")));
        found
    };
    let shares = Proportions { validation: 0.2, test: 0.1 };
    let plan = Plan::of(found(20), shares, 7).unwrap();
    let counts = Split::ALL.map(|split| plan.repositories(split));
    assert_eq!(counts, [14, 4, 2]);
    let places = |plan: &Plan, instance: &dyn Fn(usize) -> u8| -> Vec<Option<Split>> {
        (0..20).map(|n| plan.place([instance(n); 16], &format!("r{n}"))).collect()
    };
    let own = places(&plan, &|n| n as u8);
    let common = places(&plan, &|_| 255);
    for (own, common) in own.iter().zip(&common) {
        let is_test = *own == Some(Split::Test);
        assert_eq!(*common, is_test.then_some(Split::Test), "it stays in the tests alone");
    }
    assert_eq!(own, places(&Plan::of(found(20), shares, 7).unwrap(), &|n| n as u8));
    assert_ne!(own, places(&Plan::of(found(20), shares, 8).unwrap(), &|n| n as u8));
    // One more moves none from one held-out split into training and back but at the borders.
    let more = Plan::of(found(21), shares, 7).unwrap();
    let moved = own.iter().zip(places(&more, &|n| n as u8)).filter(|(a, b)| *a != b).count();
    assert!(moved <= 3, "{moved}");
    let error = Plan::of(found(2), shares, 0).unwrap_err().to_string();
    assert!(error.contains("1 for validation and 1 for tests leave none"), "{error}");
}
