//! Hostile files: without limits on look-ups and names, these tests would take hours instead of seconds, or gigabytes instead
//! of megabytes.

use super::*;
use repoformer_text::lines::Lines;

/// Returns how many calls of the last file have definitions in other files; all files can be read.
fn calls(language: Language, files: &[(&str, String)]) -> usize {
    let known = KnownNames::default();
    let read = |(path, text): &(&str, String)| {
        let lines = Lines::new(text);
        known.read(language, path, &lines, blake3::hash(text.as_bytes()).into()).0
    };
    let names: Vec<Names> = files.iter().map(read).collect();
    assert!(names.iter().all(|names| !matches!(names, Names::Unread)));
    let names = RepositoryNames::new(language, names);
    let paths = SourcePaths::new("r", files.iter().map(|(path, _)| (*path, u32::MAX)));
    Definitions::new(language, &paths, &names).calls(files.len() - 1).len()
}

/// Repeats a text for each number below `n`, which replaces `#`.
fn each(n: usize, text: &str) -> String {
    (0..n).map(|number| text.replace('#', &number.to_string())).collect()
}

/// Returns a file, and a class in another file.
fn java(text: String) -> [(&'static str, String); 2] {
    [("r/A.java", "class A { void f() {} }\n".into()), ("r/B.java", text)]
}

#[test]
fn types_within_types_are_looked_up_in_bounded_time() {
    let nested = |n: usize, class: &str, call: &str| {
        each(n, class) + "void g() {" + &call.repeat(n) + &"}".repeat(n) + "}\n"
    };
    for (n, found) in [(10, 10), (1000, 1000)] {
        let files = java(nested(n, "class B# extends A { ", "z(); f();\n"));
        assert_eq!(calls(Language::Java, &files), found);
    }
    let mut files = java(nested(400, "class B# : A { ", "z(); f();\n"));
    (files[0].0, files[1].0) = ("r/A.cs", "r/B.cs");
    assert_eq!(calls(Language::CSharp, &files), 400);
    // Types that contain themselves, and namespaces.
    let own = "class D extends D { void g() { this.z(); super.z(); z(); } }\n";
    assert_eq!(calls(Language::Java, &java(own.repeat(8000))), 0);
    let methods = each(20_000, "void g#() { this.z(); super.z(); }\n");
    let own = "class D extends D {}\n".repeat(10) + "class D extends D {\n" + &methods + "}\n";
    assert_eq!(calls(Language::Java, &java(own)), 0);
    let n = 8000;
    let namespaces = each(n, "namespace a# {}\n") + &each(n, "Z#.f();\n") + "A.f();\n";
    let files = [java(String::new())[0].clone(), ("r/B.cs", namespaces)];
    assert_eq!(calls(Language::CSharp, &files), 1);
}

#[test]
fn types_with_many_supertypes_are_looked_up_in_bounded_time() {
    for n in [10, 200, 10_000] {
        let (types, calls_of_a) = (each(n, ", B#"), each(n, "a.g#(); a.x#();\n"));
        // Only 256 supertypes of one level are searched, and `X` is not among them.
        let found = n.min(256);
        let interfaces = each(n, "export interface B# { x#(): void }\n");
        let files = [
            ("r/a.ts", format!("export interface A extends X{types} {{}}\n{interfaces}")),
            ("r/b.ts", format!("import {{A}} from './a';\nfunction g(a: A) {{\n{calls_of_a}}}\n")),
        ];
        assert_eq!(calls(Language::TypeScript, &files), found);
        let interfaces = each(n, "interface B# { void x#(); }\n");
        let files = [
            ("r/A.java", format!("interface A extends X{types} {{}}\n{interfaces}")),
            ("r/B.java", format!("class C {{ void g(A a) {{\n{calls_of_a}}}}}\n")),
        ];
        assert_eq!(calls(Language::Java, &files), found);
        let embedded = each(n, "\tB#\n");
        let types = each(n, "type B# struct { A }\nfunc (b B#) x#() {}\n");
        let files = [
            ("r/a.go", format!("package p\ntype A struct {{\n{embedded}}}\n{types}")),
            ("r/b.go", format!("package p\nfunc g(a A) {{\n{calls_of_a}}}\n")),
        ];
        // Each `B` is two types, the struct and its method.
        assert_eq!(calls(Language::Go, &files), n.min(128));
    }
    // Many definitions of one method, in two supertypes.
    let n = 8000;
    let types = "interface B { void m(); } interface C { void m(); }\n".repeat(n);
    let files = [
        ("r/A.java", types + "interface A extends B, C {}\n"),
        ("r/B.java", format!("class D {{ void g(A a) {{ {} }} }}\n", "a.m();\n".repeat(n))),
    ];
    assert_eq!(calls(Language::Java, &files), n);
}

#[test]
fn long_names_take_memory_once() {
    let n = 100_000;
    let (name, types) = ("b".repeat(n), "class D{}\n".repeat(n));
    assert_eq!(calls(Language::Java, &java(format!("class {name} {{\n{types}}}\n"))), 0);
    assert_eq!(calls(Language::Java, &java(format!("package {name};\n{types}"))), 0);
    let variables = each(n, ", x#");
    assert_eq!(calls(Language::Java, &java(format!("class B {{ {name} x{variables}; }}\n"))), 0);
    assert_eq!(calls(Language::Java, &java(format!("enum {name} {{ X{variables} }}\n"))), 0);
    let packages = "package b;\n".repeat(20_000);
    assert_eq!(calls(Language::Java, &java(packages)), 0);
}

#[test]
fn modules_are_looked_up_in_bounded_time() {
    let (stars, names) = (each(300, "export * from './m#';\n"), each(4000, "i.z#();\n"));
    let paths: Vec<String> = (0..70).map(|number| format!("r/m{number}.ts")).collect();
    let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), stars.clone())).collect();
    files[60].1 += "export function f() {}\n";
    files.push(("r/k.ts", format!("import * as i from './m0';\n{names}i.f();\n")));
    assert_eq!(calls(Language::TypeScript, &files), 1);
    let n = 20_000;
    let long = format!("import {{a}} from './{}';\n{}", "a/".repeat(2000), "a();\n".repeat(n));
    let files = [("r/m.ts", "export function a() {}\n".into()), ("r/k.ts", long)];
    assert_eq!(calls(Language::TypeScript, &files), 0);
    let defined = each(n, "def b#():\n    pass\n");
    let python =
        |text: String| calls(Language::Python, &[("r/m.py", defined.clone()), ("r/k.py", text)]);
    let calls_of_all = each(n, "b#()\n");
    assert_eq!(python(format!("{}{calls_of_all}", "from m import *\n".repeat(n))), n);
    let long = format!("from a{} import x\n{}", ".a".repeat(n), each(n, "x.b#()\n"));
    assert_eq!(python(long), 0);
    assert_eq!(python(each(n, "from x# import a\n") + &each(1000, "a.c#()\n")), 0);
    assert_eq!(python(each(n, "from x# import *\n") + &each(1000, "b#()\n")), 0);
}
