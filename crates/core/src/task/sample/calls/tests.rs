//! Expectations written by hand, in 1-based lines, including the last one.

use proptest::prelude::*;
use repoformer_text::language::Language;
use repoformer_text::language::syntax::Syntax;

use crate::task::sample::tests::{count, places, repository};
use crate::task::sample::{Kind, Sampling, sample};

macro_rules! fixtures {
    ($folder:literal: $($path:literal),+) => {
        &[$((
            $path,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/languages/", $folder, "/", $path)),
        )),+]
    };
}

const JAVA: &[(&str, &str)] = fixtures!("java/org/example/shop": "Basket.java", "Cart.java", "Money.java", "store/Store.java", "store/Stores.java");
const CSHARP: &[(&str, &str)] = fixtures!("csharp/Shop": "Basket.cs", "Cart.Trace.cs", "Cart.cs", "Money.cs", "Storage/Stores.cs");
const TYPESCRIPT: &[(&str, &str)] = fixtures!("typescript/src": "cart.ts", "money.ts", "store/index.ts", "store/memory.ts", "view.tsx");

const GO: &[(&str, &str)] =
    fixtures!("go": "basket.go", "cart.go", "money/money.go", "store/store.go");

/// Asserts that the lines of one file that end in `// api` are the lines on which calls to another file's functions begin.
fn assert_calls(language: Language, files: &[(&str, &str)], path: &str, text: &str) {
    let found = places(Kind::Api, language, &[files, &[(path, text)]].concat());
    let found = found.into_iter().filter(|(file, _)| file == path);
    let lines: Vec<&str> = text.lines().collect();
    let found: Vec<&str> = found.map(|(_, rows)| lines[rows.start]).collect();
    let wanted: Vec<&str> = lines.iter().copied().filter(|line| line.ends_with("// api")).collect();
    assert_eq!(found, wanted);
}

#[test]
fn calls_of_the_fixtures() {
    let found = |language, files| {
        let mut shown: Vec<String> = Vec::new();
        for (path, rows) in places(Kind::Api, language, files) {
            if !shown.contains(&path) {
                shown.push(path);
            }
            shown.push(format!("{}-{}", rows.start + 1, rows.end));
        }
        shown.join(" ")
    };
    for (language, files, wanted) in [
        (Language::Java, JAVA, "Cart.java 18-18 51-51 52-54 54-54 56-56 store/Stores.java 13-13"),
        (Language::CSharp, CSHARP, "Cart.cs 16-16 24-24 34-34 39-41 42-42 43-43 44-44 49-49"),
        (Language::TypeScript, TYPESCRIPT, "cart.ts 13-13 19-19 20-23 22-22 28-28 view.tsx 9-9"),
        (
            Language::Go,
            GO,
            "cart.go 27-27 35-35 46-46 48-51 55-55 56-56 57-57 58-58 store/store.go 24-24",
        ),
    ] {
        assert_eq!(found(language, files), wanted);
    }
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
    new A<String>(); // api
    new p.a.A.In().deep(); // api
    a.field.deep(); // api
    this.field.deep(); // api
    super.base(); // api
    base(); // api
    A.made(); // api
    new B().only(); // api
    ((C) list.get(0)).only2(); // api
    many.deep();
    s.deep();
    f(a, b, s, list);
    list.get(0).only(); // api
    list.get(0).add(b);
    Unknown.only();
    for (B each : list) { each.only(); } // api
    try (A.In in = a.field) { in.deep(); } catch (Exception only) { only.deep(); } // api
    if (s instanceof C c) { c.only2(); } // api
    var made = new C(); made.only2(); // api
  }
  void only2() {}
}
";
    let without_own = text.replace("  void only2() {}\n", "");
    assert_calls(Language::Java, &files, "b/Use.java", &without_own);
    // Typed calls are resolved by the type, regardless of the definitions in the file.
    assert_calls(Language::Java, &files, "b/Use.java", text);
    // Outside that package, names that are not imported are not visible.
    let text = "package q;\nimport p.b.*;\nclass D { void f(A a, B b) {\n a.base();\n b.only(); // api\n new C(); // api\n} }\n";
    assert_calls(Language::Java, &files, "q/D.java", text);
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
  Inner inner = new Inner(); // api
  void F(T t, List list, Other other) {
    Outer.Here(); // api
    N.Outer.Here(); // api
    global::N.Outer.Here(); // api
    inner.Deep(); // api
    inner.O.Deep();
    Inner.O.Here(); // api
    t.Only(); // api
    new Thing().Only(); // api
    1.Twice(); // api
    list.Twice(); // api
    list.Add(1);
    other.Only();
    var made = Make(); made.Only(); // api
    if (t is Thing q && q.ToString() == null) q.Only(); // api
    string.Only();
  }
}
";
    assert_calls(Language::CSharp, &files, "use.cs", text);
}

#[test]
fn typescript_follows_imports_through_what_is_passed_on() {
    let files = [
        (
            "lib/a.ts",
            "export class A { static make() { return new A(); } run1(): void {} }\nexport function f() {}\nexport const g = () => 1, k = made();\nexport const wrapped = made(function within() { function deep() {} });\nexport const shared: A = A.make();\nfunction hidden() {}\nexport { hidden as shown };\nexport default class { own() {} }\n",
        ),
        (
            "lib/index.ts",
            "export * from './a';\nexport { f as renamed } from './a';\nexport * as inner from './a';\nexport * from './index';\n",
        ),
        ("lib/index.tsx", "export function f() {}\n"),
        ("src/root.d.ts", "export declare function rooted(): void;\n"),
        // As the handbook of TypeScript 4.7 defines it: `.mjs` means `.mts`, `.cjs` means `.cts`, and no other path means them.
        ("lib/m.mts", "export function esm() {}\n"),
        ("lib/m.ts", "export function plain() {}\n"),
        ("lib/c.d.cts", "export declare function old(): void;\n"),
        ("lib/deep/index.mts", "export { esm } from '../m.mjs';\n"),
    ];
    let text = "import { esm, plain as none } from '../lib/m.mjs';
import { plain, esm as nowhere } from '../lib/m.js';
import { esm as bare } from '../lib/m';
import { old } from '../lib/c.cjs';
import { esm as exact } from '../lib/m.mts';
import { esm as passed } from '../lib/deep/index.mjs';
esm(); // api
plain(); // api
old(); // api
exact(); // api
passed(); // api
none();
nowhere();
bare();
import { A, f, g, k, renamed, shared, inner, missing, wrapped, within, deep } from '../lib';
import { shown as seen } from '../lib/a.js';
import Default from '../lib/a';
import * as lib from '../lib/index';
import { rooted } from 'root';
import { from } from 'rxjs';
class B extends A {
  constructor(private readonly a: A | undefined, b: A[]) { super(); this.a?.run1(); } // api
  m({ x, y: z }: any, [w]: any) {
    f(); // api
    g(); // api
    k(); // api
    renamed<number>(); // api
    shared.run1(); // api
    inner.f(); // api
    missing();
    wrapped(); // api
    within();
    deep();
    seen(); // api
    new Default().own(); // api
    lib.A.make(); // api
    lib.inner.g(); // api
    new lib.A(); // api
    rooted(); // api
    from([1]);
    this.run1(); // api
    super.run1(); // api
    A.make().run1(); // api
    x.run1(); // api
    z();
    this.b.run1(); // api
    (k as any as A).run1(); // api
    hidden();
  }
  // A method is no name on its own.
  g() {}
}
";
    assert_calls(Language::TypeScript, &files, "src/use.ts", text);
}

#[test]
fn javascript_follows_imports_and_what_it_requires() {
    let files = [
        (
            "lib/common.js",
            "function f() {}\nconst g = () => 1;\nmodule.exports = { f, h: g, deep() {}, late: function () {}, 'quoted': (n) => n, hidden };\n",
        ),
        (
            "lib/named.cjs",
            "exports.one = function () {};\nmodule.exports.two = (x) => x;\nfunction local() {}\nexports.three = local;\n",
        ),
        ("lib/whole.js", "function make() {}\nmodule.exports = make;\n"),
        ("lib/maker.js", "module.exports = class Maker { run1() {} };\n"),
        ("lib/index.mjs", "export * from './esm.js';\nexport { default } from './esm.js';\n"),
        ("lib/foo.js", "module.exports = function foo() {};\nfunction helper() {}\n"),
        ("lib/all.js", "const foo = require('./foo');\nmodule.exports = { foo };\n"),
        (
            "lib/again.js",
            "exports.two = require('./named.cjs').two;\nexports.common = require('./common');\n",
        ),
        ("lib/passed.js", "module.exports = require('./whole');\n"),
        ("lib/twice.js", "exports.load = () => 1;\n"),
        ("lib/twice.mjs", "export function load() {}\n"),
        ("lib/deep.js", "exports.g = () => 1;\n"),
        ("lib/deep/index.js", "exports.g = () => 1;\nexports.only = () => 2;\n"),
        ("src/util.js", "exports.inspect = function () {};\n"),
        (
            "lib/esm.js",
            "export class A { run2() {} }\nexport const k = make(), s = 'x';\nexport default function () {}\n",
        ),
    ];
    let text = "const common = require('./lib/common');
const { f, h: renamed, missing } = require('./lib/common.js');
const one = require('./lib/named.cjs').one, named = require('./lib/named.cjs');
const whole = require('./lib/whole');
const Maker = require('./lib/maker');
const fs = require('fs');
import made, { A, k } from './lib/index.mjs';
const { foo } = require('./lib/all');
const again = require('./lib/again'), passed = require('./lib/passed');
const { only } = require('./lib/deep/'), util = require('util');
import { load } from './lib/twice.mjs';
import made2 from './lib/whole.js';
made2(); // api
function hiding() { class load {} return load(); }
function lazy() { const late = require('./lib/named.cjs'); return late; }
function later() { const late = require('./lib/common'); return late; }
foo(); // api
foo.helper();
again.two(); // api
again.common.f(); // api
passed(); // api
only(); // api
load(); // api
util.inspect();
late.f();
late.one();
const own = function whole() {
  whole();
};
common.f(); // api
common.h(); // api
common.deep(); // api
common.late(); // api
common.quoted(); // api
common.gone();
f(); // api
renamed(); // api
missing();
one(); // api
named.two(); // api
named.three(); // api
whole(); // api
new Maker(); // api
fs.readFileSync('x');
made(); // api
k(); // api
const a = new A(); // api
a.run2(); // api
";
    assert_calls(Language::JavaScript, &files, "use.js", text);
}

#[test]
fn broken_files_define_what_could_be_read() {
    let typescript = "export function f() {}\noptions:{type:";
    let python = "def f():\n    pass\n\nfr(om(a, b, c=d(e=f[\"";
    for (language, ending, broken, importing) in [
        (Language::TypeScript, "ts", typescript, "import { f } from './a';\nf(); // api\n"),
        (Language::Python, "py", python, "from a import f\nf()  # // api\n"),
    ] {
        let syntax = Syntax::parse(broken, language).unwrap();
        assert!(syntax.tree().root_node().is_error(), "nothing could be made of the whole");
        let (defining, calling) = (format!("a.{ending}"), format!("b.{ending}"));
        assert_calls(language, &[(&defining, broken)], &calling, importing);
    }
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
        // Imports show where the repository is.
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
	s.F() // api
	sub.F()
	strings.F()
	a.Own() // api
	a.In.Go() // api
	deep.Inner.Only() // api
	many.Own()
	Shared.Own() // api
	made := &s.Deep{}
	made.Go() // api
	other := s.New()
	other.Only() // api
	other.Close()
	deep.(s.Other).Only() // api
	(&A{}).Own() // api
	len(many)
	own()
	F := own
	F()
}

func own() {}
";
    assert_calls(Language::Go, &files, "use.go", text);
    let text = text.replace("\tF := own\n", "").replace("\tF()\n", "\tF() // api\n");
    assert_calls(Language::Go, &files, "use.go", &text);
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
    assert_eq!(places(Kind::Api, Language::Java, &java), []);
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
    assert_eq!(places(Kind::Api, Language::TypeScript, &typescript), []);
    let csharp = [(
        "a.cs",
        "global using static ;\nusing A = A;\nnamespace N { namespace { class : { void F() { A.B(); } } }\n",
    )];
    assert_eq!(places(Kind::Api, Language::CSharp, &csharp), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Files cut off anywhere: no panic, and every task is cut from its file.
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
            let tasks = sample(&repository, &sampling, &count).tasks;
            prop_assert_eq!(&tasks, &sample(&repository, &sampling, &count).tasks);
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
