//! Expected values by hand from the files in `tests/fixtures/languages/`, in 1-based lines, with the last line included.

use super::*;
use crate::language::Language;
use proptest::prelude::*;

macro_rules! fixture {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/languages/", $path))
    };
}

fn parse<'a>(text: &'a str, path: &str) -> Syntax<'a> {
    Syntax::parse(text, Grammar::for_path(Language::of_path(path).unwrap(), path)).unwrap()
}

fn lines(range: &Range<usize>) -> String {
    format!("{}-{}", range.start + 1, range.end)
}

/// Formats functions as `name whole | body`, with `=` before a body that shares its lines, and `stub` or `broken` at the end.
fn functions(text: &str, path: &str) -> Vec<String> {
    let syntax = parse(text, path);
    let show = |function: Function<'_>| {
        let mut shown = format!("{} {}", function.name, lines(&function.span.lines));
        if let Some(body) = &function.body {
            let sign = if body.is_whole_lines { '|' } else { '=' };
            shown += &format!(" {sign} {}", lines(&body.span.lines));
            if body.is_stub {
                shown += " stub";
            }
        }
        shown + if function.is_broken { " broken" } else { "" }
    };
    syntax.functions().into_iter().map(show).collect()
}

/// Formats the scopes other than functions, which [`functions`] shows.
fn scopes(text: &str, path: &str) -> Vec<String> {
    let syntax = parse(text, path);
    let scopes = syntax.scopes();
    let is_function = |scope: &&Scope<'_>| scope.kind == ScopeKind::Function;
    let functions = scopes.iter().filter(is_function).map(|scope| (scope.name, scope.span.clone()));
    let wanted = syntax.functions().into_iter().map(|function| (function.name, function.span));
    assert!(functions.eq(wanted));
    let show =
        |scope: &Scope<'_>| format!("{:?} {} {}", scope.kind, scope.name, lines(&scope.span.lines));
    scopes.iter().filter(|scope| !is_function(scope)).map(show).collect()
}

#[test]
fn heads_end_behind_signatures_and_the_head_of_docstrings() {
    let python = concat!(
        "@a\ndef f(\n    x,\n):\n    # note\n    '''One\n    two\n    three\n    four.\n    '''\n    return x\n",
        "class A:\n    '''Short.\n\n    Long.\n    '''\n    def g(self): return 1\n",
    );
    let java = "class A\n{\n  int f(\n    int x\n  )\n  {\n    return x;\n  }\n  int g() {\n  }\n}\ninterface B { int h(); }\n";
    let typescript = "export const f = (\n  x,\n) => {\n  return x;\n};\nexport class A {\n  g() { return 1; }\n}\n";
    let go = "func f(\n\tx int,\n) int {\n\treturn x\n}\n";
    for (path, text, wanted) in [
        ("a.py", python, "f 1-8, A 12-13, g 17-17"),
        ("A.java", java, "A 1-1, f 3-5, g 9-9, B 12-12, h 12-12"),
        ("a.ts", typescript, "f 1-3, A 6-6, g 7-7"),
        ("a.go", go, "f 1-3"),
    ] {
        let syntax = parse(text, path);
        let scopes = syntax.scopes();
        let head = |scope: &Scope<'_>| {
            format!("{} {}", scope.name, lines(&(scope.span.lines.start..scope.head_end)))
        };
        assert_eq!(scopes.iter().map(head).collect::<Vec<_>>().join(", "), wanted, "{path}");
    }
}

/// Formats imports as `from: member > local`, `from = local`, `from: *`, followed by `static` or `on` if they apply, and
/// separated by semicolons.
fn imports(text: &str, path: &str) -> String {
    let syntax = parse(text, path);
    let show = |import: Import<'_>| {
        let mut shown = match import.binding {
            Binding::Member { member, local } if member == local => {
                format!("{}: {member}", import.from)
            }
            Binding::Member { member, local } => format!("{}: {member} > {local}", import.from),
            Binding::Whole { local } => format!("{} = {local}", import.from),
            Binding::All => format!("{}: *", import.from),
            Binding::Nothing => import.from.to_owned(),
        };
        for (is, word) in [(import.is_static, " static"), (import.is_passed_on, " on")] {
            shown += if is { word } else { "" };
        }
        shown
    };
    syntax.imports().into_iter().map(show).collect::<Vec<_>>().join("; ")
}

const JAVA_CART: &str = fixture!("java/org/example/shop/Cart.java");
const JAVA_MONEY: &str = fixture!("java/org/example/shop/Money.java");
const CSHARP_CART: &str = fixture!("csharp/Shop/Cart.cs");
const CSHARP_MONEY: &str = fixture!("csharp/Shop/Money.cs");
const TS_CART: &str = fixture!("typescript/src/cart.ts");
const TS_MONEY: &str = fixture!("typescript/src/money.ts");
const TS_VIEW: &str = fixture!("typescript/src/view.tsx");
const GO_CART: &str = fixture!("go/cart.go");
const GO_MONEY: &str = fixture!("go/money/money.go");
const GO_STORE: &str = fixture!("go/store/store.go");
const PYTHON_MONEY: &str = fixture!("python/shop/money.py");
const PYTHON_CART: &str = fixture!("python/shop/cart.py");

#[test]
fn python() {
    assert_eq!(
        functions(PYTHON_MONEY, "money.py"),
        [
            "amount 14-18 | 17-18",
            "plus 20-21 | 21-21 stub",
            "parse_money 24-31 | 26-31",
            "check 29-30 | 30-30",
            "one 34-34 = 34-34",
        ]
    );
    assert_eq!(scopes(PYTHON_MONEY, "money.py"), ["Class Money 7-21"]);
    assert_eq!(
        imports(PYTHON_MONEY, "money.py"),
        "__future__: annotations; dataclasses = dataclasses; typing = t"
    );
    assert_eq!(
        imports(PYTHON_CART, "cart.py"),
        ".: money > m; .: store; .money: parse_money; .store: *"
    );
}

#[test]
fn java() {
    assert_eq!(
        functions(JAVA_CART, "Cart.java"),
        [
            "Line 26-31 | 27-30",
            "Cart 34-36 | 35-35",
            "mapItems 38-48 | 41-47",
            "priceOf 50-59 | 51-58",
            "visitLine 62-62",
            "visitNothing 64-66 | 65-65",
        ]
    );
    assert_eq!(
        functions(JAVA_MONEY, "Money.java"),
        [
            "Money 12-18 | 13-17",
            "ofCents 20-26 | 21-24",
            "plusOther 28-28 = 28-28",
            "compareTo 30-35 | 32-34 stub",
        ]
    );
    assert_eq!(
        scopes(JAVA_CART, "Cart.java"),
        ["Class Cart 11-68", "Class Line 21-32", "Enum State 22-22", "Interface Visitor 61-67"]
    );
    assert_eq!(
        imports(JAVA_CART, "Cart.java"),
        "org.example.shop.store.Stores: openStore static; java.util: ArrayList; \
         java.util: List; java.util: Map; java.util.function: Function; \
         org.example.shop.store: *"
    );
}

#[test]
fn csharp() {
    assert_eq!(
        functions(CSHARP_CART, "Cart.cs"),
        ["PriceOfAsync 32-45 | 34-44", "Longest 35-38 | 37-37", "Cart 47-50 | 49-49",]
    );
    assert_eq!(
        functions(CSHARP_MONEY, "Money.cs"),
        [
            "Money 11-16 | 13-15",
            "OfCents 18-18 = 18-18",
            "+ 20-27 | 22-26",
            "CompareTo 29-29 = 29-29",
            "Check 31-36 | 33-35",
        ]
    );
    assert_eq!(
        scopes(CSHARP_CART, "Cart.cs"),
        ["Namespace Shop 9-51", "Class Cart 11-51", "Property Total 19-30"]
    );
    assert_eq!(
        imports(CSHARP_CART, "Cart.cs"),
        "System.Collections.Generic: *; System.Linq: *; System.Threading.Tasks: *; \
         Shop.Storage: *; Shop.Storage.Stores: * static; \
         System.Collections.Generic.Dictionary<string, Shop.Money> = Prices"
    );
    assert_eq!(imports("global using static A.B;\n", "x.cs"), "A.B: * static on");
}

#[test]
fn typescript() {
    assert_eq!(
        functions(TS_CART, "cart.ts"),
        [
            "log 6-6",
            "add 16-24 | 18-23",
            "onAdd 26-30 | 27-29",
            "size 32-34 | 33-33",
            "[Symbol.iterator] 36-38 | 37-37",
            "empty 42-44 | 43-43",
            "readCart 47-53 | 48-52",
        ]
    );
    assert_eq!(
        functions(TS_MONEY, "money.ts"),
        [
            "constructor 5-13 | 9-12",
            "plus 15-17 | 16-16",
            "ofCents 20-20 = 20-20",
            "parse 22-27 | 23-26",
            "later 29-31 | 30-30 stub",
        ]
    );
    assert_eq!(scopes(TS_CART, "cart.ts"), ["Class Cart 10-39", "Namespace Carts 41-45"]);
    assert_eq!(
        imports(TS_CART, "cart.ts"),
        "fs: readFileSync; ./money: default > parseMoney; ./money: Money; \
         ./money: ofCents > cents; ./store = stores; ./store/index.js: Store; \
         ./store/index.js: Listener"
    );
    let others = "export * from './a';\nexport * as b from './b';\nexport { c as d } from './c';\nimport './e';\n\
                  import f = require('./f');\nexport { g };\n";
    assert_eq!(imports(others, "x.ts"), "./a: * on; ./b = b on; ./c: c > d on; ./e; ./f = f");
}

#[test]
fn go() {
    assert_eq!(
        functions(GO_CART, "cart.go"),
        ["NewCart 26-28 | 27-27", "Total 31-41 | 32-40", "Put 43-59 | 44-58"]
    );
    assert_eq!(
        functions(GO_MONEY, "money.go"),
        [
            "Plus 11-11",
            "OfCents 21-23 | 22-22",
            "Plus 26-32 | 27-31",
            "Parse 35-37 | 36-36 stub",
            "String 39-39 = 39-39",
        ]
    );
    assert_eq!(scopes(GO_MONEY, "money.go"), ["Interface Adder 10-12", "Class Money 15-18"]);
    assert_eq!(scopes(GO_STORE, "store.go"), ["Class Store 7-10"]);
    assert_eq!(
        imports(GO_CART, "cart.go"),
        "fmt = fmt; sort = sort; example.org/shop/money = cash; \
         example.org/shop/store = store"
    );
    let others =
        "package a\nimport . \"b/c\"\nimport _ \"d\"\nimport (\n\t\"e/f/v2\"\n\t\"g.in/h.v3\"\n)\n";
    assert_eq!(imports(others, "x.go"), "b/c: *; d; e/f/v2 = f; g.in/h.v3 = h");
    let bound = "package a\nvar f = func() {\n\tg()\n}\nvar t = T{run: func() {\n\tg()\n}}\ntype (\n\tA struct{}\n\tB = A\n)\n";
    assert_eq!(functions(bound, "x.go"), ["f 2-4 | 3-3", "run 5-7 | 6-6"]);
}

#[test]
fn tsx_has_a_grammar_of_its_own() {
    assert_eq!(
        functions(TS_VIEW, "view.tsx"),
        ["CartView 8-21 | 9-20", "label 10-10 = 10-10", "Count 23-27 | 24-26"]
    );
    // One grammar reads a type assertion as an element; the other does not.
    let text = "const a = <b>c;\n";
    for (path, has_error) in [("x.ts", false), ("x.tsx", true)] {
        assert_eq!(parse(text, path).has_error(), has_error, "{path}");
    }
}

#[test]
fn broken_code_is_read_as_far_as_it_goes() {
    let text = fixture!("java/org/example/shop/Broken.java");
    let found = functions(text, "Broken.java");
    assert_eq!(found[0].trim_end_matches(" broken"), "whole 4-8 | 5-7");
    assert!(found[1].starts_with("torn 10-14") && found[1].ends_with("broken"), "{found:?}");
}

#[test]
fn a_last_line_for_the_preprocessor_needs_no_newline() {
    let text = "#if A\nclass B {\n  void F() {\n    G();\n  }\n}\n#endif";
    let syntax = Syntax::parse(text, Language::CSharp).unwrap();
    assert!(!syntax.has_error());
    assert_eq!(functions(text, "b.cs"), ["F 3-5 | 4-4"]);
    let comment = "class B { } // c";
    let syntax = Syntax::parse(comment, Language::CSharp).unwrap();
    assert_eq!(syntax.comments().first(), Some(&(12..16)));
}

#[test]
fn deep_nesting_and_odd_texts_break_nothing() {
    let deep = [
        "(".repeat(2_000),
        "f(".repeat(1_000) + &")".repeat(1_000),
        "class A { ".repeat(500) + &"}".repeat(500),
        "`${".repeat(500),
        // Nested too deeply to be parsed.
        "(".repeat(50_000),
        "{".repeat(50_000),
        "f(".repeat(30_000) + &")".repeat(30_000),
        "class A { ".repeat(5_000) + &"}".repeat(5_000),
        "`${".repeat(2_000),
        (0..90).map(|n| format!("{}if x:\n", " ".repeat(n))).collect(),
        "\0\u{1}\u{feff}\u{10ffff}".into(),
        "\u{feff}class A {}".into(),
    ];
    for text in &deep {
        for ending in Language::ALL.into_iter().flat_map(Language::extensions) {
            let grammar = Grammar::for_path(Language::of_path(ending).unwrap(), ending);
            let Some(syntax) = Syntax::parse(text, grammar) else {
                assert!(text.len() > 5_500, "{ending} {text}");
                continue;
            };
            let found = (syntax.functions(), syntax.imports(), syntax.scopes());
            assert!(found.0.len() + found.1.len() + found.2.len() <= text.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Ranges stay within the text, wherever the file was cut.
    #[test]
    fn spans_lie_in_the_text(which in 0usize..12, cut in any::<(u16, u16)>()) {
        let (text, path) = [
            (JAVA_CART, "a.java"), (JAVA_MONEY, "a.java"), (CSHARP_CART, "a.cs"), (CSHARP_MONEY, "a.cs"),
            (TS_CART, "a.ts"), (TS_MONEY, "a.ts"), (TS_VIEW, "a.tsx"), (PYTHON_MONEY, "a.py"), (PYTHON_CART, "a.py"),
            (GO_CART, "a.go"), (GO_MONEY, "a.go"), (GO_STORE, "a.go"),
        ][which];
        let (from, to) = (usize::from(cut.0) % text.len(), usize::from(cut.1) % text.len());
        let text = if from < to { text[..from].to_owned() + &text[to..] } else { text[to..from].to_owned() };
        let syntax = parse(&text, path);
        let count = text.matches('\n').count() + 1;
        let lies_in = |span: &Span| text.get(span.bytes.clone()).is_some() && span.lines.end <= count
            && text[..span.bytes.start].matches('\n').count() == span.lines.start;
        for function in syntax.functions() {
            prop_assert!(lies_in(&function.span), "{function:?}");
            if let Some(body) = &function.body {
                prop_assert!(lies_in(&body.span), "{function:?}");
                prop_assert!(function.span.bytes.start <= body.span.bytes.start && body.span.bytes.end <= function.span.bytes.end);
            }
        }
        prop_assert!(syntax.imports().iter().all(|import| lies_in(&import.span)));
        prop_assert!(syntax.scopes().iter().all(|scope| lies_in(&scope.span)));
    }
}
