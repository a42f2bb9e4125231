use std::sync::atomic::Ordering;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::endpoint::request::RequestWork;

#[test]
fn the_key_and_long_parts_of_it_are_masked() {
    let key = Key::new("sk-0123456789abcdef").unwrap();
    let text = |text| key.mask_text(text).into_owned();
    assert_eq!(text("é sk-0123456789abcdef é"), "é *** é");
    assert_eq!(text("it ends with 456789abcdef."), "it ends with ***.");
    assert_eq!(text("sk-01234567 is short"), "sk-01234567 is short");
    assert_eq!(key.mask_message(b"sk-0123456789abcdefsk-0123456789abcdef!"), b"***!");
    let mut answer = json!({"a sk-0123456789abcdef": [1, "x", {"b": "0123456789ab"}], "c": null});
    key.mask(&mut answer);
    assert_eq!(answer, json!({"a ***": [1, "x", {"b": "***"}], "c": null}));
    // A word that completions may contain is masked only in messages.
    let word = Key::new("EMPTY").unwrap();
    assert!(word.parts.is_empty(), "no form of it is masked");
    assert_eq!(
        (&*word.mask_text("EMPTY"), &*word.mask_message(b"wrong key EMPTY")),
        ("EMPTY", &b"wrong key ***"[..])
    );
}

#[test]
fn keys_in_urls_are_masked_in_both_forms() {
    let key = Key::with_query(None, "?api-version=2024-10-21-preview&api-key=ab%2Bcdefghijklm%2Fn")
        .unwrap();
    assert_eq!(key.header(), None);
    let text = |text| key.mask_text(text).into_owned();
    assert_eq!(text("no ab+cdefghijklm/n here"), "no *** here");
    assert_eq!(text("?api-key=ab%2Bcdefghijklm%2Fn"), "?api-key=***");
    assert_eq!(text("2024-10-21-preview"), "2024-10-21-preview");
    assert_eq!(key.mask_message(b"x ab+cdefghijklm/n"), b"x ***");
    // Azure's name for a key, and a name that the program does not know.
    for name in ["code", "x"] {
        let key = Key::with_query(None, &format!("?{name}=0123456789abcdef")).unwrap();
        assert_eq!(key.mask_text("is 0123456789abcdef"), "is ***");
    }
    // The query may consist of a key alone, or the key's name may resemble a harmless one.
    let names =
        ["deployment_token=", "model_key=", "Subversion-Key=", "region-key=", "organization="];
    for name in ["", "a=1&", "a=1;", "=", "a=b="].into_iter().chain(names) {
        let key = Key::with_query(None, &format!("?{name}0123456789abcdef")).unwrap();
        assert_eq!(key.mask_text("is 0123456789abcdef"), "is ***", "{name}");
    }
    // Base64, whose padding looks like an empty value.
    for query in ["?#=", "?#==", "?a=1&#=", "?#==&a=1", "?;#=", "?a=#==", "?#%3D"] {
        let key = Key::with_query(None, &query.replace('#', "0123456789abcdef")).unwrap();
        assert_eq!(key.mask_text("is 0123456789abcdef"), "is ***", "{query}");
        assert!(key.mask_text("is 0123456789abcdef==").starts_with("is ***"), "{query}");
    }
    assert!(
        Key::with_query(None, "?key=short&API-Version=2024-10-21-preview&model=a-long-name-1")
            .is_none()
    );
    // Characters beyond ASCII, also in pieces.
    let key = Key::with_query(None, "?key=%C3%A9t%C3%A9-cl%c3%a9-s%C3%A9cr-%C3%A8te%FF").unwrap();
    for secret in ["été-clé-sécr-ète", "%C3%A9t%C3%A9-cl%c3%a9-s%C3%A9cr-%C3%A8te"] {
        let text = format!("é is '{secret}' é");
        assert_eq!(key.mask_text(&text), "é is '***' é");
        let mut mask = KeyMask::new(Arc::new(key.clone()));
        let shown: String = text.chars().map(|c| mask.pass(&c.to_string())).collect();
        assert_eq!(shown + &mask.finish(), "é is '***' é");
    }
    // The key from the environment, in a URL.
    let key = Key::with_query(Key::new("sk-live+0a1b/2c3d"), "").unwrap();
    assert_eq!(key.mask_text("?key=sk-live%2B0a1b%2F2c3d."), "?key=***.");
}

#[test]
fn answers_in_files_are_masked_as_those_of_servers() {
    let secret = "rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U";
    let url = format!("http://h/v1?api-key={secret}");
    let of = |name: &str, value: &str| Key::of_variables([(name.into(), value.into())].into_iter());
    for (name, value) in [
        (DEFAULT_KEY_VARIABLE, secret),
        (POLICY_KEY_VARIABLE, secret),
        ("REPOFORMER_ENDPOINT", &url),
        ("REPOFORMER_POLICY_ENDPOINT", &url),
    ] {
        assert_eq!(of(name, value).mask_text(secret), MASK, "{name}");
    }
    assert!(of("REPOFORMER_ENDPOINT", "http://h/v1").parts.is_empty());
    assert!(of("OTHER", &url).parts.is_empty());
    assert!(of(DEFAULT_KEY_VARIABLE, " ").secrets.is_empty());
    // The URL of a file or a flag.
    let mut answer = json!({"text": format!("is {secret}")});
    assert!(!holds_key(secret));
    mask_keys_of(&url);
    mask_keys(&mut answer);
    assert_eq!(answer, json!({"text": "is ***"}));
    assert!(holds_key(secret));
}

#[test]
fn keys_are_masked_together_as_each_alone() {
    let secrets = ["rk-Zq7VxP2mLw9TdKf4HsJy", "9876543210123456", "sk/live+0a1b/2c3d=", "EMPTY"];
    let mut all = Key::default();
    secrets.iter().for_each(|secret| all.join(Key::new(secret).unwrap()));
    for secret in secrets {
        let one = Key::new(secret).unwrap();
        let spaced: Vec<String> = secret.chars().map(String::from).collect();
        for text in [secret.to_owned(), url_encoded(secret), spaced.join("_"), spaced.join(" ")] {
            let text = format!("is {text}.");
            assert_eq!(all.mask_text(&text), one.mask_text(&text));
            assert_eq!(all.mask_message(text.as_bytes()), one.mask_message(text.as_bytes()));
        }
    }
    let (parts, header) = (all.parts.len(), all.header().cloned());
    all.join(Key::new(secrets[0]).unwrap());
    assert_eq!((all.parts.len(), all.secrets.len(), header), (parts, secrets.len(), None));
}

#[test]
fn other_forms_of_a_key_are_masked() {
    let secret = "sk-live+0a1b/2c3d=4e5f&6a7b";
    let key = Key::new(secret).unwrap();
    let each = |form: fn(u8) -> String| secret.bytes().map(form).collect::<String>();
    let basic = |user: &str| encode_bits(format!("{user}:{secret}").as_bytes(), BASE64);
    let list = |form: fn(u8) -> String, between: &str| {
        secret.bytes().map(form).collect::<Vec<_>>().join(between)
    };
    // Groups as `xxd` prints them.
    let words = secret.as_bytes().chunks(2);
    let words: Vec<String> = words
        .map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        .collect();
    for (form, least) in [
        (each(|byte| format!("\\u{byte:04x}")), 3),
        (each(|byte| format!("\\\\u{byte:04X}")), 3),
        (each(|byte| format!("%{byte:02x}")), 3),
        (each(|byte| format!("%25{byte:02X}")), 3),
        (each(|byte| format!("&#{byte};")), 3),
        (each(|byte| format!("&#x{byte:x};")), 3),
        (secret.replace('/', "\\/").replace('&', "&amp;"), 3),
        (each(|byte| format!("\\x{byte:02x}")), 3),
        (each(|byte| format!("\\{byte:03o}")), 3),
        (each(|byte| format!("\\u{{{byte:x}}}")), 3),
        (each(|byte| format!("\\U{byte:08x}")), 3),
        (each(|byte| format!("&#{byte}")), 3),
        (each(|byte| format!("&#x{byte:04x}")), 3),
        (each(|byte| format!("&#{byte:07};")), 3),
        (secret.replace('&', "&amp"), 3),
        (secret.replace('+', "&plus;").replace('/', "&sol;").replace('=', "&equals;"), 3),
        (each(|byte| format!("={byte:02X}")), 3),
        (secret.replace('=', "=3D").replace("5f", "5=\r\nf"), 3),
        (secret.replace("li", "li\n"), 3),
        (list(|byte| format!("{byte:02x}"), " "), 3),
        (list(|byte| format!("{byte:02X}"), ":"), 3),
        (list(|byte| format!("0x{byte:02x}"), ", "), 3),
        (list(|byte| byte.to_string(), ", "), 3),
        (list(|byte| format!("'{byte}'"), ", "), 5),
        (list(|byte| format!("{byte:02x}"), "").replace("2d6c", "2d 6c"), 10),
        (words.join(" "), 3),
        (encode_bits(secret.as_bytes(), BASE32), 3),
        (encode_bits(secret.as_bytes(), BASE32).to_lowercase(), 3),
        (each(|byte| format!("{byte:02X}")), 3),
        // The surrounding text determines one or two characters and the rest of a group, which stay.
        (basic("a"), 12),
        (basic("us"), 12),
        (basic("use"), 12),
        (basic("").replace('+', "-").replace('/', "_"), 12),
    ] {
        let masked = key.mask_text(&form);
        assert!(masked.contains(MASK) && masked.len() <= least, "{form}: {masked}");
    }
}

/// In a text that repeats it, a backslash or an entity could not be told from an escape.
#[test]
fn a_key_with_a_backslash_or_an_entity_is_refused() {
    assert!(Key::new(r"sk-0123\456789abcdef").is_none());
    assert!(Key::new("sk-0123&lt;456789abcdef").is_none());
    assert!(Key::new("sk-0123;456789&abcdef").is_some());
    assert!(Key::new("sk-0123/456789abcdef").is_some());
}

/// Such a variable is refused when a server is asked; answers from files are masked all the same.
#[test]
fn a_variable_that_is_no_key_is_masked() {
    for value in
        ["Bearer rk-Zq7VxP2mLw9TdKf4", "other\nrk-Zq7VxP2mLw9TdKf4", r"rk-Zq7VxP2mLw9TdKf4\a"]
    {
        let variables = [(DEFAULT_KEY_VARIABLE.to_owned(), value.to_owned())];
        let key = Key::of_variables(variables.into_iter());
        assert_eq!(key.mask_text("is rk-Zq7VxP2mLw9TdKf4 here"), "is *** here", "{value}");
    }
}

#[test]
fn a_value_with_a_semicolon_is_masked_whole_and_in_parts() {
    let key = Key::of_url("http://h/v1?a=b&api-key=sk-Qw7Er9T;Zx3Cv5Bn8M0aB").unwrap();
    assert_eq!(key.mask_text("<sk-Qw7Er9T;Zx3Cv5Bn8M0aB>"), "<***>");
    assert_eq!(key.mask_text("<Zx3Cv5Bn8M0aB>"), "<***>");
}

/// Keys may have fewer than twelve letters and digits.
#[test]
fn signs_of_a_key_are_masked_as_its_letters_are() {
    for secret in ["P@ss-w0rd.2024!", "it's-a'key'4-me", "a/-b/-c/-d/-e/-f/-g", "sk-pr-Ab3d_9-Z.q7"]
    {
        let key = Key::new(secret).unwrap();
        let between = |text: &str| secret.split("").collect::<Vec<_>>().join(text);
        let json = |text: &str| json!(text).to_string();
        let escaped: String = secret
            .chars()
            .flat_map(|c| (!c.is_ascii_alphanumeric()).then_some('\\').into_iter().chain([c]))
            .collect();
        let forms = [
            between(" "),
            between("  "),
            between("\t"),
            between("\n"),
            escaped,
            secret.replace('\'', "\\'"),
            json(secret),
            json(&json(secret)),
        ];
        for form in forms {
            let masked = key.mask_text(&format!("<<{form}>>")).into_owned();
            let is_of_key = |c: &char| !c.is_whitespace() && !matches!(c, '"' | '\\');
            let left = masked.chars().filter(is_of_key).count();
            assert!(masked.contains(MASK) && left <= 3 + 4 + 4, "{form}: {masked}");
        }
    }
}

#[test]
fn a_key_is_masked_in_any_notation() {
    let secret = "rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U";
    let key = Key::new(secret).unwrap();
    let each = |form: &dyn Fn(u8) -> String| secret.bytes().map(form).collect::<String>();
    let list = |between: &str, form: &dyn Fn(u8) -> String| {
        secret.bytes().map(form).collect::<Vec<_>>().join(between)
    };
    let hex: String = each(&|byte| format!("{byte:02x}"));
    let base64 = encode_bits(secret.as_bytes(), BASE64);
    let groups = |text: &str, size: usize, between: &str| {
        let groups = text.as_bytes().chunks(size).map(|group| str::from_utf8(group).unwrap());
        groups.collect::<Vec<_>>().join(between)
    };
    let mixed: String = hex
        .chars()
        .enumerate()
        .map(|(at, c)| if at % 3 == 0 { c.to_ascii_uppercase() } else { c })
        .collect();
    let forms = [
        list(",\n        ", &|byte| byte.to_string()),
        list(",\n\t\t\t\t", &|byte| format!("{byte:#x}")),
        list(", ", &|byte| format!("{byte}u8")),
        list(", ", &|byte| format!("0x{byte:02x}u8")),
        list(", ", &|byte| format!("(byte){byte}")),
        list(", ", &|byte| format!("(byte) 0x{byte:02X}")),
        list(", ", &|byte| format!("UInt8({byte})")),
        list(", ", &|byte| format!("{byte}.0")),
        list(" ", &|byte| format!("{byte:03o}")),
        list(", ", &|byte| format!("{byte:#o}")),
        list(", ", &|byte| format!("{byte:#b}")),
        list(", ", &|byte| format!("0x{byte:03x}")),
        list(" ", &|byte| format!("{byte:03X}h")),
        list(",", &|byte| format!("0x{byte:07x}")),
        list(" ", &|byte| format!("{byte:08b}")),
        list("; ", &|byte| format!("{byte:05}")),
        each(&|byte| format!("&amp;#{byte};")),
        each(&|byte| format!("&amp;amp;amp;#x{byte:x};")),
        each(&|byte| format!("&#{byte:020};")),
        each(&|byte| format!("\\{byte:o}")),
        each(&|byte| format!("\\x{{{byte:x}}}")),
        each(&|byte| format!("\\uuu{byte:04x}")),
        each(&|byte| format!("\\x{byte:08x}")),
        each(&|byte| format!("\\o{{{byte:o}}}")),
        each(&|byte| format!("\\{}", char::from(byte))),
        each(&|byte| format!("\\{byte:x} ")),
        each(&|byte| format!("%u{byte:04x}")),
        each(&|byte| format!("{byte:02x}00")),
        list(" ", &|byte| format!("{byte:04x}")),
        list("\", \"", &|byte| char::from(byte).to_string()),
        secret.replace('-', "\\55"),
        secret.replace('-', "\\x{2d}"),
        secret.replace('-', "&amp;#45;"),
        groups(secret, 5, "= \t\r\n"),
        groups(secret, 8, "' + '"),
        groups(secret, 8, "\u{200b}"),
        mixed,
        groups(&hex, 1, " "),
        groups(&hex, 3, " "),
        groups(&hex, 5, " "),
        groups(&hex, 10, ", 0x"),
        groups(&hex, 16, "\n"),
        groups(&base64, 4, " "),
        groups(&base64, 8, "\\n"),
        groups(&base64, 8, "\\\\r\\\\n"),
        groups(&base64, 5, "\n\n    "),
    ];
    for form in forms {
        let masked = key.mask_text(&form);
        assert!(masked.contains(MASK) && masked.len() <= 24, "{form}: {masked}");
        for size in [1, 3, 7] {
            let mut mask = KeyMask::new(Arc::new(key.clone()));
            let mut shown = String::new();
            for piece in form.chars().collect::<Vec<_>>().chunks(size) {
                shown += &mask.pass(&piece.iter().collect::<String>());
            }
            assert_eq!(shown + &mask.finish(), masked, "{form}");
        }
    }
}

/// Numbers separated only by letters.
#[test]
fn a_key_is_masked_whatever_letters_are_between_its_numbers() {
    let secret = "rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5Up0";
    let key = Key::new(secret).unwrap();
    let notations: [fn(u8) -> String; 25] = [
        |byte| format!("0x{byte:03x}"),
        |byte| format!("x{byte:02x}"),
        |byte| format!("u{byte:04x}"),
        |byte| format!("U{byte:08X}"),
        |byte| format!("{byte:02x}h"),
        |byte| format!("{byte:02x}zz"),
        |byte| format!("{byte:02x}x"),
        |byte| format!("0x{byte:02x}"),
        |byte| format!("0X{byte:02X}"),
        |byte| format!("d{byte}"),
        |byte| format!("c{byte} "),
        |byte| format!("x{byte} "),
        |byte| format!("n{byte}, "),
        |byte| format!("chr{byte} "),
        |byte| format!("{byte}y"),
        |byte| format!("{byte}e"),
        |byte| format!("{byte}and"),
        |byte| format!("{byte}u8and"),
        |byte| format!("b{byte:08b}"),
        |byte| format!("0b{byte:08b}"),
        |byte| format!("0b{byte:b}"),
        |byte| format!("{byte:b}b"),
        |byte| format!("o{byte:o}"),
        |byte| format!("0o{byte:o}"),
        |byte| format!("{byte:o}o"),
    ];
    for form in notations.map(|form| secret.bytes().map(form).collect::<String>()) {
        let masked = key.mask_text(&form);
        // The text around the first and the last number stays.
        assert!(masked.contains(MASK) && masked.len() <= 10, "{form}: {masked}");
        for size in [1, 3, 7] {
            let mut mask = KeyMask::new(Arc::new(key.clone()));
            let mut shown = String::new();
            for piece in form.as_bytes().chunks(size) {
                shown += &mask.pass(str::from_utf8(piece).unwrap());
            }
            assert_eq!(shown + &mask.finish(), masked, "{form}");
        }
    }
    let wide: Vec<u8> = secret.bytes().flat_map(|byte| [byte, 0]).collect();
    for signs in [BASE64, BASE32] {
        for bytes in [&wide[..], &[&[0], &wide[..]].concat()] {
            let masked = key.mask_text(&encode_bits(bytes, signs)).into_owned();
            // The rest of a group stays at both ends.
            assert!(masked.contains(MASK) && masked.len() <= 20, "{masked}");
        }
    }
}

/// The characters are separated by the same text, in several layers, or written in the number formats of other programs.
#[test]
fn a_key_is_masked_whatever_is_between_its_characters() {
    let secret = "sk-live+0a1b/2c3d=4e5f&6a7b8c9d0e1f2a3b4c5d";
    let key = Key::new(secret).unwrap();
    let between = [
        ("b'", "', "),
        ("Some('", "'), "),
        ("'", "' as u8, "),
        ("ord('", "'),\n"),
        ("L'", "', "),
        ("r\"", "\" "),
        ("s+='", "';"),
        ("<i>", "</i>"),
        ("<td class=\"x\">", "</td>\n"),
        ("", "<br>"),
        ("\\b{", "}"),
        ("$", ","),
        ("", "\\x00"),
        ("", "\\u0000"),
        ("", "\\0"),
        ("", "&nbsp;"),
        ("", "&#8203;"),
        ("", "=20"),
        ("", "=0A"),
        ("", "%00"),
        ("", "%20"),
        ("", "\\u200b"),
        ("", "\\n"),
        ("", "\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}"),
        ("\u{1b}[31m", "\u{1b}[0m"),
    ];
    let characters = between.map(|(left, right)| {
        let each = |c: char| format!("{left}{c}{right}");
        secret.chars().map(each).collect::<String>()
    });
    let notations: [fn(u8) -> String; 24] = [
        |byte| format!("b'\\x{byte:02x}', "),
        |byte| format!("'\\u{byte:04x}',"),
        |byte| format!("%26%23{byte}%3B"),
        |byte| format!("%5Cu{byte:04x}"),
        |byte| format!("%5Cx{byte:02x}"),
        |byte| format!("&#92;u{byte:04x}"),
        |byte| format!("&bsol;u{byte:04x}"),
        |byte| format!("&#37;{byte:02x}"),
        |byte| format!("\\u005cu{byte:04x}"),
        |byte| format!("\\u0026#{byte};"),
        |byte| format!("=25{byte:02X}"),
        |byte| format!("%3D{byte:02X}"),
        |byte| format!("=26#{byte};"),
        |byte| format!("%255Cu{byte:04x}"),
        |byte| format!("&H{byte:02X}, "),
        |byte| format!("0x{byte:02x}_u8, "),
        |byte| format!("{byte}_u8, "),
        |byte| format!("{byte}uy; "),
        |byte| format!("{byte}.toByte(), "),
        |byte| format!("0b{:04b}_{:04b}, ", byte >> 4, byte & 15),
        |byte| format!("{byte:e}, ", byte = f64::from(byte)),
        |byte| format!("{}.{:02}e+01, ", byte / 10, byte % 10 * 10),
        |byte| format!("{byte}. "),
        |byte| format!("{byte}.0000, "),
    ];
    let numbers = notations.map(|form| secret.bytes().map(form).collect::<String>());
    for form in characters.into_iter().chain(numbers) {
        let masked = key.mask_text(&form);
        // Up to four characters at the beginning and one separator at the end may stay.
        let most = form.len() * 6 / secret.len() + 3;
        assert!(masked.contains(MASK) && masked.len() <= most, "{form}: {masked}");
        for size in [1, 3, 7] {
            let mut mask = KeyMask::new(Arc::new(key.clone()));
            let mut shown = String::new();
            for piece in form.chars().collect::<Vec<_>>().chunks(size) {
                shown += &mask.pass(&piece.iter().collect::<String>());
            }
            assert_eq!(shown + &mask.finish(), masked, "{form}");
        }
    }
    for other in
        ["s1k2-3l4i5v6e", "s.k.-.l.i.v.e.+.0", "x = [115.5, 107.25, 45.1]", "&mut a && b %20 \\n"]
    {
        assert_eq!(key.mask_text(other), other);
    }
}

#[test]
fn lists_and_numbers_that_spell_a_key_are_masked() {
    let secret = "rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U";
    let key = Key::new(secret).unwrap();
    let of = |form: fn(u8) -> Value| Value::Array(secret.bytes().map(form).collect());
    for mut list in [
        of(|byte| byte.into()),
        of(|byte| f64::from(byte).into()),
        of(|byte| (f64::from(byte) + 1e-9).into()),
        of(|byte| (-f64::from(byte)).into()),
        of(|byte| (-i64::from(byte)).into()),
        of(|byte| byte.to_string().into()),
        of(|byte| format!("0x{byte:x}").into()),
        of(|byte| char::from(byte).to_string().into()),
        of(|byte| json!([byte])),
        of(|byte| json!([[char::from(byte).to_string()]])),
    ] {
        assert!(key.mask(&mut list));
        assert_eq!(list, MASK);
    }
    let mut others = json!([[1, 2, 0.5, 114], ["a", "b"], [[1], [2]], [], {"rk": [114, 107, 45]}]);
    assert!(!key.mask(&mut others));
    let mut one = json!(["is", secret]);
    key.mask(&mut one);
    assert_eq!(one, json!(["is", "***"]));
    let mut inner = json!({"other": 1, "a": [["b"], [[&secret[..9]], [&secret[9..20]]]]});
    assert!(key.mask(&mut inner));
    assert_eq!(inner, json!({"other": 1, "a": [["b"], "***"]}));
    let digits = Key::new("123456789012345").unwrap();
    let mut answer = json!({"count": 123456789012345u64, "other": 12});
    assert!(digits.mask(&mut answer));
    assert_eq!(answer, json!({"count": null, "other": 12}));
}

#[test]
fn a_key_is_masked_however_its_characters_nest() {
    let secret = "rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U";
    let key = Key::new(secret).unwrap();
    let bytes = secret.as_bytes();
    let signs: Vec<String> = secret.chars().map(String::from).collect();
    let indexed = bytes.iter().enumerate().map(|(at, byte)| (at.to_string(), json!(byte)));
    let pairs = |bytes: &[u8]| json!(bytes.chunks(2).collect::<Vec<_>>());
    for spelled in [
        pairs(bytes),
        json!(signs.chunks(2).collect::<Vec<_>>()),
        json!(bytes.chunks(8).map(pairs).collect::<Vec<_>>()),
        Value::Object(indexed.collect()),
        json!(bytes.iter().map(|byte| json!({"b": byte, "is": null})).collect::<Vec<_>>()),
        json!(signs.iter().map(|sign| json!({"c": sign})).collect::<Vec<_>>()),
        json!(signs.iter().map(|sign| json!({sign.as_str(): -1.5})).collect::<Vec<_>>()),
    ] {
        let mut answer = json!({"id": "x", "usage": {"n": 3, "of": spelled}, "v": [[0.5, 0.25]]});
        assert!(key.mask(&mut answer));
        let without = json!({"id": "x", "usage": {"n": 3, "of": MASK}, "v": [[0.5, 0.25]]});
        assert_eq!(answer, without);
    }
}

#[test]
fn a_key_in_pieces_is_masked() {
    let mut mask = KeyMask::new(Arc::new(Key::new("sk-0123456789abcdef").unwrap()));
    let pieces = "it is sk-0123456789abcdef, s".chars().map(|c| mask.pass(&c.to_string()));
    let shown: Vec<String> = pieces.collect();
    // Text that cannot begin a form of the key is not held back.
    assert_eq!(shown[..3].concat(), "it ");
    assert_eq!(shown.concat() + &mask.finish(), "it is ***, s");
}

/// Whole keys between the characters of a key would leave these at equal distances.
#[test]
fn masks_separate_no_characters_of_a_key() {
    let secret = "sk-Zq7VxP2mLw9TdKf4HsJyB8nRc3XgUe5QaWo1Yt6i";
    let key = Arc::new(Key::new(secret).unwrap());
    let spell = |between: &str| -> String {
        secret.chars().map(|c| format!("{c}{between}{secret}")).collect()
    };
    let long = "x".repeat(LONGEST_GAP);
    for (text, wanted) in [
        (format!("a {} b", spell("")), "a s*** b".to_owned()),
        (format!("a {} b", spell(&long[2..])), format!("a s{}*** b", &long[2..])),
        // Longer texts are no separators.
        (format!("a {secret}{long}y{secret}"), format!("a ***{long}y***")),
    ] {
        assert_eq!(key.mask_text(&text), wanted);
        for length in [1, 7, 40, 4_000] {
            let mut mask = KeyMask::new(Arc::clone(&key));
            let pieces = text.as_bytes().chunks(length);
            let pieces = pieces.map(|piece| mask.pass(std::str::from_utf8(piece).unwrap()));
            let shown: Vec<String> = pieces.collect();
            assert_eq!(shown.concat() + &mask.finish(), wanted, "{length}");
        }
    }
}

/// The text after the first escape is read as the continuation of the text before it, in every layer.
#[test]
fn an_escape_in_a_later_batch_is_read_with_what_is_before_it() {
    let secret = "rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U";
    let key = Key::new(secret).unwrap();
    let spaced: String = secret.chars().map(|c| format!("{c}.;")).collect();
    for (form, escape, escaped) in [
        (secret, "9", "\\u0039"),
        (secret, "9", "%2539"),
        (secret, "9", "=\r\n9"),
        (&spaced, "9", "&#57;"),
        (&spaced, "9", "\\u005cu0039"),
    ] {
        let form = form.replace(escape, escaped);
        let end = form.find(escaped).unwrap() + escaped.len();
        for at in [1, end / 2, end - 2] {
            let masked = key.mask_text(&form).into_owned();
            let before = " ".repeat(BATCH - at);
            assert_eq!(key.mask_text(&(before.clone() + &form)), before.clone() + &masked);
            let mut mask = KeyMask::new(Arc::new(key.clone()));
            let (one, other) = form.split_at(at);
            let pieces = mask.pass(one) + &mask.pass(other) + &mask.finish();
            assert_eq!(pieces, masked, "{form}: {at}");
        }
    }
}

/// A piece may be as long as an answer, and is read in batches like one.
#[test]
fn long_pieces_are_masked_as_the_whole() {
    let secret = "rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U";
    let key = Key::new(secret).unwrap();
    for at in [BATCH - 40, BATCH - 20, BATCH - 1, BATCH, 3 * BATCH - 7] {
        for form in [secret.to_owned(), secret.replace('9', "\\u0039")] {
            let text = format!("{}{form}{}", "é. ".repeat(at / 4), " y".repeat(BATCH));
            let masked = key.mask_text(&text);
            assert!(masked.contains(". *** y"));
            for cut in [0, at, at + 11, text.len()] {
                let (one, other) = text.split_at(text.floor_char_boundary(cut));
                let mut mask = KeyMask::new(Arc::new(key.clone()));
                let pieces = mask.pass(one) + &mask.pass(other) + &mask.finish();
                assert!(pieces == masked, "{at} {form} {cut}");
            }
        }
    }
}

/// The answer of a cancelled request is not read to its end, where it may contain a key.
#[test]
fn all_of_a_request_that_is_given_up_is_masked() {
    let (key, is_closed) = (Key::new("rk-Zq7VxP2mLw9TdKf4HsJy").unwrap(), Arc::default());
    let mask = || {
        let mut answer = json!({"a": "text", "b": ["a longer text than that"]});
        (key.mask(&mut answer), answer)
    };
    {
        let _work = RequestWork::begin(&is_closed);
        assert!(!mask().0);
        is_closed.store(true, Ordering::Relaxed);
        assert_eq!(mask(), (true, json!(MASK)));
    }
    assert!(!mask().0);
}

/// A key of 1,584 characters.
#[test]
fn a_long_key_is_masked_as_a_short_one_is() {
    let secret: String = (0..1584u32)
        .map(|at| char::from(BASE64[(at.wrapping_mul(2_654_435_761) >> 23) as usize % 62]))
        .collect();
    let key = Key::new(&secret).unwrap();
    let code = "    return compute_value(argument_3, 3)\n".repeat(20);
    assert_eq!(key.mask_text(&code), code);
    for form in [secret[700..1000].to_owned(), encode_bits(secret.as_bytes(), BASE64)] {
        let shown = key.mask_text(&format!("{code}'{form}'\n{code}")).into_owned();
        assert_eq!(shown, format!("{code}'{MASK}'\n{code}"));
    }
    let spaced: String = secret.chars().map(|c| format!("{c}, ")).collect();
    assert!(key.mask_text(&spaced).len() < 20);
}

/// The time for each piece depends only on its length, and the text held back is bounded.
#[test]
fn what_waits_is_bounded() {
    let key = Arc::new(Key::new("rk-Zq7VxP2mLw9TdKf4HsJy8NbRc3GaQe5U").unwrap());
    for piece in [
        "&#0", "&#1", "72 ", "114,\n", "\\", "=\n", "&amp;", "r", "0", "\\n", " ", "u", "%25",
        "=3D", "&a", "1_", "1.", "1e+", "%26%2300", "<i>r</i>", "r..k..-..Z..q..7..V..",
    ] {
        let mut mask = KeyMask::new(Arc::clone(&key));
        for _ in 0..5_000 {
            mask.pass(piece);
            assert!(mask.held.len() < 4000, "{piece:?}: {}", mask.held.len());
        }
    }
}

proptest! {
    #[test]
    fn pieces_are_masked_as_the_whole(
        secret in r"[ab%/u0]{1,30}",
        around in proptest::collection::vec(r"[ab%/\\u02356f&;#xamp= \n\ré]{0,9}", 2..6),
        cuts in proptest::collection::vec(0usize..400, 0..20),
    ) {
        let key = Key::new(&secret).unwrap();
        let numbers: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let list: Vec<String> = secret.bytes().map(|byte| byte.to_string()).collect();
        let text = around.join(&secret) + &url_encoded(&secret).to_lowercase() + &around.join(" ")
            + &numbers.join(&around[0]) + &list.join(&around[1]) + &numbers.join(" ") + &list.join(",");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut.min(text.len()))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut mask = KeyMask::new(Arc::new(key.clone()));
        let pieces: String = cuts.windows(2).map(|cut| mask.pass(&text[cut[0]..cut[1]])).collect();
        prop_assert_eq!(pieces + &mask.finish(), key.mask_text(&text));
    }

    #[test]
    fn no_part_of_a_key_stays(secret in "[a-c]{1,30}", text in "[a-cé]{0,60}", cut in 0usize..30) {
        let key = Key::new(&secret).unwrap();
        let text = format!("{text}{}{text}", &secret[cut.min(secret.len())..]);
        let shown = key.mask_text(&text);
        for part in secret.as_bytes().windows(PART) {
            prop_assert!(!shown.contains(str::from_utf8(part).unwrap()), "{shown}");
        }
        prop_assert!(memchr::memmem::find(&key.mask_message(text.as_bytes()), secret.as_bytes()).is_none());
    }
}
