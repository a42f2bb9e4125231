//! Expectations by hand, in 1-based lines, the last one included.

use super::*;
use crate::repository::corpus::SourceFile;
use crate::task::sample::{Hole, Kind, Sampling, candidates, sample};
use proptest::prelude::*;

macro_rules! fixtures {
    ($folder:literal: $($path:literal),+) => {
        &[$((
            $path,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/languages/", $folder, "/", $path)),
        )),+]
    };
}

const JAVA: &[(&str, &str)] = fixtures!("java/org/example/shop": "Basket.java", "Cart.java", "Money.java", "store/Store.java", "store/Stores.java");
const CSHARP: &[(&str, &str)] = fixtures!("csharp/Shop": "Basket.cs", "Cart.Trace.cs", "Cart.cs", "Money.cs", "Storage/Stores.cs");
const TYPESCRIPT: &[(&str, &str)] = fixtures!("typescript/src": "cart.ts", "money.ts", "store/index.ts", "store/memory.ts", "view.tsx");

const GO: &[(&str, &str)] =
    fixtures!("go": "basket.go", "cart.go", "money/money.go", "store/store.go");

fn repository(files: &[(&str, &str)]) -> Repository {
    let mut files: Vec<SourceFile> = files
        .iter()
        .map(|(path, text)| SourceFile {
            path: format!("r/{path}"),
            text: (*text).to_owned(),
            same_as: u32::MAX,
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let name = "r".into();
    Repository { name, files }
}

/// `file first-last` of every candidate.
fn holes(kind: Kind, language: Language, files: &[(&str, &str)]) -> Vec<String> {
    let repository = repository(files);
    let (_, holes) = candidates(&repository, kind, language);
    let show = |hole: &Hole| {
        let path = &repository.files[hole.file].path[2..];
        format!("{path} {}-{}", hole.start + 1, hole.end)
    };
    holes.iter().map(show).collect()
}

/// The calls among the lines of one file, as texts; the other files come first.
fn calls(language: Language, files: &[(&str, &str)], path: &str, text: &str) -> Vec<String> {
    let files = [files, &[(path, text)]].concat();
    let lines: Vec<&str> = text.lines().collect();
    let found = holes(Kind::Api, language, &files);
    let own = found.iter().filter_map(|hole| hole.strip_prefix(path)?.strip_prefix(' '));
    let text_of = |hole: &str| {
        let (first, last) = hole.split_once('-').unwrap();
        lines[first.parse::<usize>().unwrap() - 1..last.parse().unwrap()]
            .join(" ")
            .trim()
            .to_owned()
    };
    own.map(text_of).collect()
}

#[test]
fn bodies_of_the_fixtures() {
    assert_eq!(
        holes(Kind::Function, Language::Java, JAVA),
        [
            "Basket.java 7-9",
            "Cart.java 27-30",
            "Cart.java 41-47",
            "Cart.java 51-58",
            "Money.java 13-17",
            "Money.java 21-24",
            "store/Stores.java 9-19",
            "store/Stores.java 12-14",
        ]
    );
    assert_eq!(
        holes(Kind::Function, Language::CSharp, CSHARP),
        [
            "Basket.cs 9-12",
            "Cart.Trace.cs 7-11",
            "Cart.cs 34-44",
            "Money.cs 13-15",
            "Money.cs 22-26",
            "Money.cs 33-35",
        ]
    );
    assert_eq!(
        holes(Kind::Function, Language::TypeScript, TYPESCRIPT),
        [
            "cart.ts 18-23",
            "cart.ts 27-29",
            "cart.ts 48-52",
            "money.ts 9-12",
            "money.ts 23-26",
            "store/memory.ts 4-12",
            "store/memory.ts 7-9",
            "view.tsx 9-20",
            "view.tsx 24-26",
        ]
    );
    assert_eq!(
        holes(Kind::Function, Language::Go, GO),
        [
            "basket.go 9-12",
            "basket.go 16-18",
            "cart.go 32-40",
            "cart.go 44-58",
            "money/money.go 27-31",
            "store/store.go 22-28",
            "store/store.go 24-26",
        ]
    );
}

#[test]
fn calls_of_the_fixtures() {
    assert_eq!(
        holes(Kind::Api, Language::Java, JAVA),
        [
            "Cart.java 18-18",
            "Cart.java 51-51",
            "Cart.java 52-54",
            "Cart.java 54-54",
            "Cart.java 56-56",
            "store/Stores.java 13-13",
        ]
    );
    assert_eq!(
        holes(Kind::Api, Language::CSharp, CSHARP),
        [
            "Cart.cs 16-16",
            "Cart.cs 24-24",
            "Cart.cs 34-34",
            "Cart.cs 39-41",
            "Cart.cs 42-42",
            "Cart.cs 43-43",
            "Cart.cs 44-44",
            "Cart.cs 49-49",
        ]
    );
    assert_eq!(
        holes(Kind::Api, Language::TypeScript, TYPESCRIPT),
        [
            "cart.ts 13-13",
            "cart.ts 19-19",
            "cart.ts 20-23",
            "cart.ts 22-22",
            "cart.ts 28-28",
            "view.tsx 9-9",
        ]
    );
    assert_eq!(
        holes(Kind::Api, Language::Go, GO),
        [
            "cart.go 27-27",
            "cart.go 35-35",
            "cart.go 46-46",
            "cart.go 48-51",
            "cart.go 55-55",
            "cart.go 56-56",
            "cart.go 57-57",
            "cart.go 58-58",
            "store/store.go 24-24",
        ]
    );
}

#[test]
fn java_sees_types_by_package_import_and_full_name() {
    let files = [
        (
            "a/A.java",
            "package p.a;\npublic class A<T> {\n  public static class In { public void deep() {} }\n  public In field;\n  protected void base() {}\n  static void made() {}\n}\n",
        ),
        (
            "b/B.java",
            "package p.b;\npublic class B { void only() {} void add() {} static class A {} }\n",
        ),
        ("b/C.java", "package p.b;\nclass C { void only2() {} }\n"),
    ];
    let text = "package p.b;
import p.a.A;
class Use extends A<String> {
  private A<String>[] many;
  void f(A<Integer> a, B b, String s, java.util.List<B> list) {
    new A<String>();
    new p.a.A.In().deep();
    a.field.deep();
    this.field.deep();
    super.base();
    base();
    A.made();
    new B().only();
    ((C) list.get(0)).only2();
    many.deep();
    s.deep();
    f(a, b, s, list);
    list.get(0).only();
    list.get(0).add(b);
    Unknown.only();
    for (B each : list) { each.only(); }
    try (A.In in = a.field) { in.deep(); } catch (Exception only) { only.deep(); }
    if (s instanceof C c) { c.only2(); }
    var made = new C(); made.only2();
  }
  void only2() {}
}
";
    let without_own = text.replace("  void only2() {}\n", "");
    let wanted = [
        "new A<String>();",
        "new p.a.A.In().deep();",
        "a.field.deep();",
        "this.field.deep();",
        "super.base();",
        "base();",
        "A.made();",
        "new B().only();",
        "((C) list.get(0)).only2();",
        "list.get(0).only();",
        "for (B each : list) { each.only(); }",
        "try (A.In in = a.field) { in.deep(); } catch (Exception only) { only.deep(); }",
        "if (s instanceof C c) { c.only2(); }",
        "var made = new C(); made.only2();",
    ];
    assert_eq!(calls(Language::Java, &files, "b/Use.java", &without_own), wanted);
    // Typed calls go by the type, whatever the file defines itself.
    assert_eq!(calls(Language::Java, &files, "b/Use.java", text), wanted);
    // Out of that package, what is not imported is not seen.
    let text = "package q;\nimport p.b.*;\nclass D { void f(A a, B b) {\n a.base();\n b.only();\n new C();\n} }\n";
    assert_eq!(calls(Language::Java, &files, "q/D.java", text), ["b.only();", "new C();"]);
}

#[test]
fn csharp_sees_namespaces_from_the_inside_out() {
    let files = [
        (
            "a.cs",
            "namespace N { class Outer { public static void Here() {} } namespace M { class Inner { public Outer O { get; } public void Deep() {} } } }\n",
        ),
        (
            "b.cs",
            "global using N.Far;\nnamespace N.Far { static class Ext { public static int Twice(this int x) => 2 * x; public static void Add(this int x) {} } class Thing { public void Only() {} } }\n",
        ),
    ];
    let text = "using T = N.Far.Thing;
using List = System.Collections.Generic.List<int>;
namespace N.M.K;
class Use {
  Inner inner = new Inner();
  void F(T t, List list, Other other) {
    Outer.Here();
    N.Outer.Here();
    global::N.Outer.Here();
    inner.Deep();
    inner.O.Deep();
    Inner.O.Here();
    t.Only();
    new Thing().Only();
    1.Twice();
    list.Twice();
    list.Add(1);
    other.Only();
    var made = Make(); made.Only();
    if (t is Thing q && q.ToString() == null) q.Only();
    string.Only();
  }
}
";
    assert_eq!(
        calls(Language::CSharp, &files, "use.cs", text),
        [
            "Inner inner = new Inner();",
            "Outer.Here();",
            "N.Outer.Here();",
            "global::N.Outer.Here();",
            "inner.Deep();",
            "Inner.O.Here();",
            "t.Only();",
            "new Thing().Only();",
            "1.Twice();",
            "list.Twice();",
            "var made = Make(); made.Only();",
            "if (t is Thing q && q.ToString() == null) q.Only();",
        ]
    );
}

#[test]
fn typescript_follows_imports_through_what_is_passed_on() {
    let files = [
        (
            "lib/a.ts",
            "export class A { static make() { return new A(); } run1(): void {} }\nexport function f() {}\nexport const g = () => 1, k = 2;\nexport const shared: A = A.make();\nfunction hidden() {}\nexport { hidden as shown };\nexport default class { own() {} }\n",
        ),
        (
            "lib/index.ts",
            "export * from './a';\nexport { f as renamed } from './a';\nexport * as inner from './a';\nexport * from './index';\n",
        ),
        ("lib/index.tsx", "export function f() {}\n"),
        ("src/root.d.ts", "export declare function rooted(): void;\n"),
    ];
    let text = "import { A, f, g, k, renamed, shared, inner, missing } from '../lib';
import { shown as seen } from '../lib/a.js';
import Default from '../lib/a';
import * as lib from '../lib/index';
import { rooted } from 'root';
import { from } from 'rxjs';
class B extends A {
  constructor(private readonly a: A | undefined, b: A[]) { super(); this.a?.run1(); }
  m({ x, y: z }: any, [w]: any) {
    f();
    g();
    k();
    renamed<number>();
    shared.run1();
    inner.f();
    missing();
    seen();
    new Default().own();
    lib.A.make();
    lib.inner.g();
    new lib.A();
    rooted();
    from([1]);
    this.run1();
    super.run1();
    A.make().run1();
    x.run1();
    z();
    this.b.run1();
    (k as any as A).run1();
    hidden();
  }
}
";
    assert_eq!(
        calls(Language::TypeScript, &files, "src/use.ts", text),
        [
            "constructor(private readonly a: A | undefined, b: A[]) { super(); this.a?.run1(); }",
            "f();",
            "g();",
            "renamed<number>();",
            "shared.run1();",
            "inner.f();",
            "seen();",
            "new Default().own();",
            "lib.A.make();",
            "lib.inner.g();",
            "new lib.A();",
            "rooted();",
            "this.run1();",
            "super.run1();",
            "A.make().run1();",
            "x.run1();",
            "this.b.run1();",
            "(k as any as A).run1();",
        ]
    );
}

#[test]
fn go_sees_its_folder_and_what_it_imports() {
    let files = [
        (
            "a.go",
            "package r\n\nimport \"example.org/x/r/sub\"\n\ntype A struct {\n\tB\n\tIn *sub.Deep\n}\n\ntype B struct{}\n\nfunc (b *B) Own() {}\n\nfunc F() {}\n\nvar Shared A\n",
        ),
        (
            "sub/sub.go",
            "package sub\n\ntype Deep struct{ Inner Other }\n\ntype Other interface{ Only() }\n\nfunc (d Deep) Go() {}\n\nfunc F() {}\n\nfunc (d Deep) Close() {}\n",
        ),
        // Imports say where the repository is.
        ("b.go", "package r\n\nimport \"example.org/x/r/sub\"\n"),
    ];
    let text = "package r

import (
	s \"example.org/x/r/sub\"
	\"example.org/y/sub\"
	\"strings\"
)

func use(a *A, many []A, deep s.Deep) {
	F()
	s.F()
	sub.F()
	strings.F()
	a.Own()
	a.In.Go()
	deep.Inner.Only()
	many.Own()
	Shared.Own()
	made := &s.Deep{}
	made.Go()
	other := s.New()
	other.Only()
	other.Close()
	deep.(s.Other).Only()
	(&A{}).Own()
	len(many)
	own()
	F := own
	F()
}

func own() {}
";
    assert_eq!(
        calls(Language::Go, &files, "use.go", text),
        [
            "s.F()",
            "a.Own()",
            "a.In.Go()",
            "deep.Inner.Only()",
            "Shared.Own()",
            "made.Go()",
            "other.Only()",
            "deep.(s.Other).Only()",
            "(&A{}).Own()",
        ]
    );
    let text = text.replace("\tF := own\n", "");
    let found = calls(Language::Go, &files, "use.go", &text);
    assert_eq!(found.iter().filter(|call| *call == "F()").count(), 2);
}

#[test]
fn circles_and_odd_files_end() {
    let java = [
        ("A.java", "class A extends B { void f() { g(); this.x.y.g(); } B x; }\n"),
        ("B.java", "class B extends A { A y; }\n"),
        ("C.java", "class C extends C { void h() { h2(); } class C {} }\n"),
        (
            "D.java",
            "\u{feff}package ;\nimport ;\nimport static x;\nclass { void (x y) { new (); .f(); } }\n",
        ),
    ];
    assert_eq!(holes(Kind::Api, Language::Java, &java), [""; 0]);
    let typescript = [
        (
            "a.ts",
            "import { x } from './b';\nexport { x } from './b';\nexport * from './b';\nx();\nimport * as a from './a';\na.a.a.x();\n",
        ),
        (
            "b.ts",
            "export { x } from './a';\nexport * from './a';\nimport y from '../../../..';\ny();\n",
        ),
    ];
    assert_eq!(holes(Kind::Api, Language::TypeScript, &typescript), [""; 0]);
    let csharp = [(
        "a.cs",
        "global using static ;\nusing A = A;\nnamespace N { namespace { class : { void F() { A.B(); } } }\n",
    )];
    assert_eq!(holes(Kind::Api, Language::CSharp, &csharp), [""; 0]);
}

/// Word runs and single signs.
fn count(text: &str) -> usize {
    let mut word = false;
    let begins = text.chars().filter(|&c| {
        let continues = word && (c == '_' || c.is_alphanumeric());
        word = c == '_' || c.is_alphanumeric();
        !c.is_whitespace() && !continues
    });
    begins.count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Files torn anywhere: no panic, and every task is cut from its file.
    #[test]
    fn tasks_are_cut_from_their_files(which in 0usize..4, torn in any::<[(usize, u16, u16); 2]>(), seed in any::<u64>()) {
        let (language, files) = [(Language::Java, JAVA), (Language::CSharp, CSHARP), (Language::TypeScript, TYPESCRIPT), (Language::Go, GO)][which];
        let mut files: Vec<(&str, String)> = files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
        for (file, from, to) in torn {
            let file = file % files.len();
            let text = &mut files[file].1;
            let (from, to) = (usize::from(from) % text.len(), usize::from(to) % text.len());
            text.replace_range(from.min(to)..from.max(to), "");
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let repository = repository(&files);
        for kind in Kind::ALL {
            let sampling = Sampling { language, seed, per_repository: 30, ..Sampling::new(kind) };
            let tasks = sample(&repository, &sampling, &count);
            prop_assert_eq!(&tasks, &sample(&repository, &sampling, &count));
            for task in tasks {
                let lines = repository.file(&task.path).unwrap().lines();
                let end = task.line_no + task.ground_truth.split('\n').count();
                let rest = lines.range(end, lines.count());
                let rest = if end < lines.count() { format!("\n{rest}") } else { String::new() };
                let whole = format!("{}{}{rest}", task.prompt, task.ground_truth);
                prop_assert_eq!(whole, lines.range(task.context_start, lines.count()));
            }
        }
    }
}
