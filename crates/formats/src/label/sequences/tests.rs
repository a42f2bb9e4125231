use std::path::PathBuf;

use proptest::prelude::*;
use repoformer_text::language::Language;
use serde_json::json;

use super::*;
use repoformer_core::prompt::style::DecisionFrame;
use repoformer_core::prompt::style::{Budget, Parts, Style};
use repoformer_core::task::cross_file::CrossFile;

fn tokenizer(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("tests/fixtures/tokenizers");
    folder.join(format!("{name}.json"))
}

fn settings(style: &str, max_tokens: usize, max_cross_file_tokens: usize) -> VerbalizeSettings {
    let style: Style = style.parse().unwrap();
    VerbalizeSettings {
        frame: DecisionFrame::new(&style, None, None).unwrap(),
        max_tokens,
        max_cross_file_tokens,
        end: None,
        lambda: 2.0,
        held_out: Proportions { validation: 0.0, test: 0.0 },
        seed: 0,
        shard: None,
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
    Sequence::new(label, "r", encoder, settings).unwrap().unwrap()
}

/// The two forms of section 3.3, token by token: the token after `<eof>` and the target are supervised.
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
        // λ·L_eval + L_gen, with L_gen as the mean over the target's tokens.
        let weights = sequence.weights(2.0);
        assert_eq!(weights[sequence.decision], 2.0);
        let of_target = 1.0 / encoder.tokenizer().count(target) as f32;
        assert!(weights[sequence.completion..].iter().all(|w| *w == of_target));
        assert!((weights.iter().sum::<f32>() - 3.0).abs() < 1e-5);
    }
    // A stop token is supervised like the target.
    settings.end = Some("<|endoftext|>".into());
    let label = label("x = 1\n", "y = x\n", "", "", false);
    let sequence = sequence(&label, &encoder, &settings);
    assert_eq!(spelled(&sequence, &|at| sequence.is_completion(at)), "y = x\n<|endoftext|>");
}

/// 100 tokens minus 10 of the target, 20 of the cross-file context and 5 special ones leave 65: 21 for the right context, 44
/// for the left. Each `z` on its own line is two tokens of the fixture, `z` and the newline.
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
    // The same, without the positive form's 21 tokens.
    assert_eq!(kept(50, 50, false), (44, 21, 79, [true, true, false]));
    // One context gets the tokens that the other leaves.
    assert_eq!(kept(50, 5, true), (55, 10, 100, [true, false, true]));
    assert_eq!(kept(10, 50, false), (20, 45, 79, [false, true, false]));
}

/// The released program's records have only the similarities.
#[test]
fn similarities_stand_for_a_label() {
    let settings = settings("starcoder", 40, 10);
    let encoder = encoder("starcoder", &settings);
    let mut unlabelled = label("x", "y", "", "# b\n", true);
    (unlabelled.label, unlabelled.es_rg1) = (None, Some(1.0));
    for (without, positive) in [(0.5, true), (1.0, false)] {
        unlabelled.es_infile = Some(without);
        assert_eq!(sequence(&unlabelled, &encoder, &settings).positive, positive);
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
        assert_eq!(DecisionFrame::new(&style, None, None).unwrap(), settings.frame);
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
        assert!(DecisionFrame::new(&style, None, None).is_err(), "{name}");
    }
    let style: Style = "starcoder".parse().unwrap();
    assert!(DecisionFrame::new(&style, Some("<cc>"), None).is_err());
    let renamed = DecisionFrame::new(&style, Some("<end_rc>"), Some("<cfc_info>")).unwrap();
    assert_eq!((renamed.eof(), renamed.cc()), ("<end_rc>", "<cfc_info>"));
}

/// The paper's ablation A4: the decision and the context follow `<fim_middle>`.
#[test]
fn a_template_may_decide_after_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a4.toml");
    let write = |template: &str| {
        let specials = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<cc>", "<cc_end>"];
        let specials: Vec<&str> =
            specials.into_iter().filter(|special| template.contains(special)).collect();
        let specials = json!(specials);
        let text = format!("about = \"A4\"\nspecials = {specials}\ntemplate = \"{template}\"\n");
        std::fs::write(&path, text).unwrap();
        Style::open(&path)
    };
    let head = "<fim_prefix>{left}<fim_suffix>{right}<fim_middle>";
    let style =
        write(&format!("{head}{{#cross_file}}<cc>{{cross_file}}<cc_end>{{/cross_file}}")).unwrap();
    let frame = DecisionFrame::new(&style, None, None).unwrap();
    let settings = VerbalizeSettings { frame, ..settings("starcoder", 2048, 512) };
    let encoder = encoder("starcoder", &settings);
    for (positive, shown) in [(true, "<cc># b = 2\n<cc_end>"), (false, "")] {
        let label = label("x = 1\n", "y = x\n", "\nz = y", "# b = 2\n", positive);
        let sequence = sequence(&label, &encoder, &settings);
        let wanted = format!("<fim_prefix>x = 1\n<fim_suffix>\nz = y<fim_middle>{shown}y = x\n");
        assert_eq!(sequence.text, wanted);
        let middle = encoder.tokenizer().special("<fim_middle>");
        assert_eq!(sequence.ids.get(sequence.decision - 1).copied(), middle);
        assert_eq!(sequence.decision == sequence.completion, !positive);
        assert_eq!(encoder.decode(&sequence.ids[sequence.completion..]).unwrap(), "y = x\n");
        let weights: f32 = sequence.weights(2.0).iter().sum();
        assert!((weights - 3.0).abs() < 1e-6, "both losses count: {weights}");
    }
    std::fs::write(&path, settings.frame.to_style_file()).unwrap();
    let again = DecisionFrame::new(&Style::open(&path).unwrap(), None, None).unwrap();
    assert_eq!(again, settings.frame);
    let style = write(&format!("{head}{{#cross_file}}{{cross_file}}{{/cross_file}}")).unwrap();
    let error = DecisionFrame::new(&style, None, None).unwrap_err().to_string();
    assert!(error.contains("shows cross-file context after the token that begins"), "{error}");
}

fn odd_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        2 => "<(eof|cc|fim_prefix|fim_middle|\\|endoftext\\|)>",
        2 => "(\r\n|\t|  |漢字|e\u{301}|😀|\u{feff}|\u{0}|0123456789)",
        1 => "\\PC{0,6}",
        1 => "[a-z_]{1,12}",
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// For any texts, the tokens decode to the text and do not exceed the limit, each special token is only at its intended
    /// position, and the current file is the same for either label.
    #[test]
    fn odd_texts_come_back(
        (left, right, cross_file) in (odd_text(), odd_text(), odd_text()), target in odd_text(), max_tokens in 20_usize..200,
    ) {
        prop_assume!(!repoformer_text::lines::strip(&target).is_empty());
        let settings = settings("starcoder", max_tokens, 30);
        let encoder = encoder("starcoder", &settings);
        let made = [false, true].map(|positive| {
            let label = label(&left, &target, &right, &cross_file, positive);
            Sequence::new(&label, "r", &encoder, &settings).unwrap()
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

/// Counts by Python's package tokenizers for the same files: `<s>` begins CodeLlama's prompts, and NFC joins characters.
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
    let shares = Proportions { validation: 0.2, test: 0.1 };
    // One instance per repository, and one that is in all.
    let places = |repositories: u8| {
        let mut found = Occurrences::default();
        for name in 0..repositories {
            for instance in [name, 255] {
                let occurrence = Occurrence {
                    instance: [instance; 16],
                    kind: None,
                    file: 0,
                    line: 1,
                    repository: 0,
                };
                found.note(occurrence, &format!("r{name}"));
            }
        }
        let plan = Plan::new(found, shares, 7).unwrap();
        let places = |name| [name, 255].map(|of| plan.place([of; 16], &format!("r{name}")));
        (0..20).map(places).collect::<Vec<_>>()
    };
    let twenty = places(20);
    for [own, common] in &twenty {
        assert_eq!(*common, own.filter(|own| *own == Split::Test), "it stays in the tests alone");
    }
    let of = |split| twenty.iter().filter(|[own, _]| *own == Some(split)).count();
    assert_eq!(Split::ALL.map(of), [14, 4, 2]);
    // One additional repository moves others only at the splits' borders.
    let moved = twenty.iter().zip(places(21)).filter(|(a, b)| a[0] != b[0]).count();
    assert!(moved <= 3, "{moved}");
}
