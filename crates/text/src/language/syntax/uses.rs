//! Names that a text binds and uses, with their scopes.

use std::ops::Range;

use foldhash::HashSet;
use tree_sitter::Node;

use super::{Binding, Syntax};
use crate::language::BlockMarks;

/// Use of a name in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameUse<'a> {
    /// The name.
    pub name: &'a str,
    /// Position of the name in the text.
    pub bytes: Range<usize>,
    /// Role of the name.
    pub role: UseRole<'a>,
    scope: usize,
}

/// Role of a name that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseRole<'a> {
    /// A name of its own.
    Bare,
    /// A member after a dot, or the name of an argument. The value is the name before the dot, or the first one of the called name, such
    /// as `a` in `a.b` and in `a.f(b=1)`; it is `None` for members of other expressions, such as `a.b().c`.
    Member(Option<&'a str>),
}

/// Names that a text binds and uses.
///
/// ```
/// use repoformer_text::language::Language;
/// use repoformer_text::language::syntax::{NameUses, Syntax};
/// let text = "def f(a):\n    b = a.size(axis=c)\n    return [d for d in b]\n";
/// let syntax = Syntax::parse(text, Language::Python).unwrap();
/// let names = NameUses::new(&syntax);
/// let free = names.uses().iter().filter(|one| !names.is_bound(one));
/// assert_eq!(free.map(|one| one.name).collect::<Vec<_>>(), ["size", "axis", "c"]);
/// ```
#[derive(Debug)]
pub struct NameUses<'a> {
    uses: Vec<NameUse<'a>>,
    bound: HashSet<(usize, &'a str)>,
    /// Names that any scope binds, and members that are assigned.
    bound_anywhere: HashSet<&'a str>,
    /// Names of functions and types that the text defines.
    defined: HashSet<&'a str>,
    /// First names of the types that types of the text extend.
    supertypes: HashSet<&'a str>,
    /// Scopes by number, each before those within it.
    scopes: Vec<Scope>,
}

#[derive(Debug, Clone, Copy)]
struct Scope {
    /// The scope around it; its own number if there is none.
    outer: usize,
    kind: NameScopeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameScopeKind {
    /// File or function.
    Function,
    /// Class whose names its functions see only as members.
    Class,
    /// Comprehension, which sees the names of a class directly around it.
    Comprehension,
    /// Supertype, type or default of a definition, which sees what the definition sees around it, and its type parameters.
    Header,
}

/// Fields in which a name is bound, with the endings of the kinds of nodes that have them.
const BINDING_FIELDS: &[(&str, &[&str])] = &[
    (
        "name",
        &[
            "declaration",
            "definition",
            "declarator",
            "parameter",
            "spec",
            "named_expression",
            "declaration_expression",
            "enhanced_for_statement",
            "resource",
            "constant",
            "function_expression",
            "local_function_statement",
            "class",
            "member_declaration",
            "declaration_pattern",
            "function_signature",
            "generator_function",
            "instanceof_expression",
            "mapped_type_clause",
            "module",
            "type_alias",
        ],
    ),
    (
        "left",
        &[
            "assignment", "for_statement", "for_in_clause", "for_in_statement", "range_clause",
            "short_var_declaration", "foreach_statement", "receive_statement",
            "type_alias_statement",
        ],
    ),
    ("pattern", &["parameter"]),
    ("alias", &["as_pattern", "type_switch_statement"]),
    ("parameter", &["arrow_function", "catch_clause"]),
    ("parameters", &["lambda_expression", "lambda", "anonymous_method_expression"]),
];

/// Fields of nodes that bind names, in which names are used.
const UNBOUND_FIELDS: &[&str] = &["condition", "default_value", "right", "subject", "type"];

/// Kinds of nodes whose children are bound.
const BINDING_NODES: &[&str] = &[
    "as_pattern_target",
    "case_pattern",
    "formal_parameters",
    "global_statement",
    "index_signature",
    "infer_type",
    "inferred_parameters",
    "lambda_parameters",
    "nonlocal_statement",
    "parameters",
    "parenthesized_variable_designation",
    "record_pattern_component",
    "type_parameter",
    "type_pattern",
];

/// Endings of the kinds of nodes in which several names are bound together.
const GROUPS: &[&str] =
    &["pattern", "expression_list", "typed_parameter", "pattern_list", "tuple_expression"];

/// Endings of the kinds of nodes that are names.
const NAMES: &[&str] = &["identifier", "identifier_pattern", "implicit_parameter"];

/// Kinds of nodes that list the types that a type extends.
const SUPERTYPES: &[&str] = &["base_list", "class_heritage", "super_interfaces", "superclass"];

/// Kinds of nodes without a name that open a scope.
const NAMELESS_SCOPES: &[&str] = &[
    "anonymous_method_expression",
    "arrow_function",
    "dictionary_comprehension",
    "func_literal",
    "function_expression",
    "generator_expression",
    "generator_function",
    "lambda",
    "lambda_expression",
    "list_comprehension",
    "set_comprehension",
];

/// Greatest number of scopes, and of nodes around a name, that are searched; more are nested in no program.
const DEEPEST: usize = 256;
/// Greatest length in bytes of the first name of an expression; each member would read it again.
const LONGEST_FIRST: usize = 256;

/// Node, with the field of its parent that it is in, and the kind of the node before it in the parent.
type Placed<'tree> = (Node<'tree>, Option<&'tree str>, &'tree str);

impl<'a> NameUses<'a> {
    /// Finds the names in a tree. Names in imports only bind.
    pub fn new(syntax: &Syntax<'a>) -> Self {
        let mut all = Self {
            uses: Vec::new(),
            bound: HashSet::default(),
            bound_anywhere: HashSet::default(),
            defined: HashSet::default(),
            supertypes: HashSet::default(),
            scopes: vec![Scope { outer: 0, kind: NameScopeKind::Function }],
        };
        let mut cursor = syntax.tree().walk();
        let mut around: Vec<Placed<'_>> = Vec::new();
        // Number of the scope around each node in `around`, and of the current one.
        let mut scopes = vec![0];
        let mut before = "";
        loop {
            let node = (cursor.node(), cursor.field_name(), before);
            let scope = scopes.last().copied().unwrap_or_default();
            if let Some(inner) = all.enter(syntax, node, &around, scope)
                && cursor.goto_first_child()
            {
                around.push(node);
                scopes.push(inner);
                before = "";
                continue;
            }
            before = node.0.kind();
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return all;
                }
                before = around.pop().map_or("", |(node, ..)| node.kind());
                scopes.pop();
            }
        }
    }

    /// Returns the names that are used, in the order of the text.
    pub fn uses(&self) -> &[NameUse<'a>] {
        &self.uses
    }

    /// Returns true if any scope of the text binds a name, or if the text assigns a member of that name.
    pub fn binds(&self, name: &str) -> bool {
        self.bound_anywhere.contains(name)
    }

    /// Returns true if the text defines a function or type of this name.
    pub fn defines(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// Returns the first names of the types that types of the text extend.
    pub fn supertypes(&self) -> impl Iterator<Item = &'a str> {
        self.supertypes.iter().copied()
    }

    /// Returns true if a name is bound in a scope that its use sees. Bindings may come later in the text.
    pub fn is_bound(&self, one: &NameUse<'_>) -> bool {
        if one.role != UseRole::Bare {
            return false;
        }
        let (mut number, mut sees_class, mut is_header) = (one.scope, true, false);
        for _ in 0..DEEPEST {
            let Scope { outer, kind } = self.scopes[number];
            let is_seen = sees_class || kind != NameScopeKind::Class;
            if is_seen && self.bound.contains(&(number, one.name)) {
                return true;
            }
            if number == outer {
                return false;
            }
            match kind {
                NameScopeKind::Comprehension => {}
                NameScopeKind::Header => is_header = true,
                NameScopeKind::Function | NameScopeKind::Class => {
                    sees_class &= std::mem::take(&mut is_header);
                }
            }
            number = outer;
        }
        // What so deep a scope sees is not known.
        true
    }

    /// Reads a node, and returns the scope of its children; `None` if they are not read.
    fn enter<'tree>(
        &mut self,
        syntax: &Syntax<'a>,
        node: Placed<'tree>,
        around: &[Placed<'tree>],
        scope: usize,
    ) -> Option<usize> {
        let spec = syntax.spec();
        let kind = node.0.kind();
        // What cannot be parsed may bind or use anything.
        if node.0.is_error() {
            return None;
        }
        let imports = syntax.imports_of(node.0);
        if !imports.is_empty() {
            for import in imports {
                let local = match import.binding {
                    Binding::Member { local, .. } | Binding::Whole { local } => local,
                    Binding::All | Binding::Nothing => continue,
                };
                self.bind(scope, local.split('.').next().unwrap_or(local));
            }
            return None;
        }
        let is_class = spec.is_named_type(kind);
        if is_class
            || spec.is_function(kind)
            || NAMELESS_SCOPES.contains(&kind) && node.0.is_named()
        {
            let kind = match kind {
                _ if is_class && spec.layout == BlockMarks::Indentation => NameScopeKind::Class,
                _ if kind.contains("comprehension") || kind == "generator_expression" => {
                    NameScopeKind::Comprehension
                }
                _ => NameScopeKind::Function,
            };
            self.scopes.push(Scope { outer: scope, kind });
            return Some(self.scopes.len() - 1);
        }
        let is_of_parameter =
            || around.last().is_some_and(|(node, ..)| node.kind().ends_with("parameter"));
        let is_header = match node.1 {
            Some("superclasses" | "return_type") => true,
            Some("type" | "value") => spec.layout == BlockMarks::Indentation && is_of_parameter(),
            _ => false,
        };
        let mut scope = scope;
        if is_header {
            self.scopes.push(Scope { outer: scope, kind: NameScopeKind::Header });
            scope = self.scopes.len() - 1;
        }
        if node.0.child_count() == 0 && ends_with(kind, NAMES) {
            self.add(syntax, node, around, scope);
        }
        Some(scope)
    }

    fn bind(&mut self, scope: usize, name: &'a str) {
        self.bound.insert((scope, name));
        self.bound_anywhere.insert(name);
    }

    fn add(&mut self, syntax: &Syntax<'a>, one: Placed<'_>, around: &[Placed<'_>], scope: usize) {
        let (text, (node, field, before)) = (syntax.text(), one);
        let name = syntax.of(node).trim_start_matches('#');
        let Some((parent, _, before_parent)) = around.last() else { return };
        let role = if is_member(field, before)
            || parent.kind().starts_with("generic_")
                && before.is_empty()
                && is_member(None, before_parent)
        {
            let mut outer = around.iter().rev().take(DEEPEST);
            let whole = outer.find(|(outer, ..)| outer.start_byte() < node.start_byte());
            // A member that is assigned exists afterwards.
            let around_member = around.len().checked_sub(2).map(|place| around[place].0.kind());
            let is_left = around.last().is_some_and(|(_, field, _)| *field == Some("left"));
            if is_left && around_member.is_some_and(|kind| kind.starts_with("assignment")) {
                self.bound_anywhere.insert(name);
                return;
            }
            UseRole::Member(
                whole.and_then(|(whole, ..)| first_name(text, *whole, node.start_byte())),
            )
        } else if parent.kind() == "keyword_argument" && field == Some("name") {
            let call = around.iter().rev().nth(2).filter(|(call, ..)| call.kind() == "call");
            // The header of a class is read by its metaclass, which may take anything.
            let Some((call, ..)) = call else { return };
            let arguments = call.child_by_field_name("arguments");
            let end = arguments.map_or(node.start_byte(), |arguments| arguments.start_byte());
            let first = first_name(text, *call, end);
            UseRole::Member(first.or_else(|| {
                let function = call.child_by_field_name("function")?;
                let object = function.child_by_field_name("object")?;
                (object.kind() == "identifier").then(|| syntax.of(object))
            }))
        } else if is_label(around, one) {
            return;
        } else if let Some(place) = binder(one, around) {
            let spec = syntax.spec();
            let (holder, ..) = around[place];
            let mut scope = scope;
            match holder.kind() {
                "named_expression" => {
                    while self.scopes[scope].kind == NameScopeKind::Comprehension {
                        scope = self.scopes[scope].outer;
                    }
                }
                "global_statement" => self.bind(0, name),
                // A definition binds its own name around it.
                kind if place + 1 == around.len()
                    && (spec.is_named_type(kind) || spec.is_function(kind)) =>
                {
                    self.defined.insert(name);
                    scope = self.scopes[scope].outer;
                }
                _ => {}
            }
            self.bind(scope, name);
            return;
        } else {
            UseRole::Bare
        };
        let is_supertype = around.iter().rev().take(4).any(|(node, field, _)| {
            *field == Some("superclasses") || SUPERTYPES.contains(&node.kind())
        });
        if is_supertype {
            self.supertypes.insert(match role {
                UseRole::Member(Some(first)) => first,
                _ => name,
            });
        }
        self.uses.push(NameUse { name, bytes: node.byte_range(), role, scope });
    }
}

fn ends_with(kind: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| kind.ends_with(ending))
}

/// Returns true if a name in this field, behind a node of this kind, is a member.
fn is_member(field: Option<&str>, before: &str) -> bool {
    matches!(field, Some("attribute" | "property" | "field")) || matches!(before, "." | "?." | "::")
}

/// Returns the name with which a node begins, if only a dot lies between the name and a place.
fn first_name<'a>(text: &'a str, node: Node<'_>, place: usize) -> Option<&'a str> {
    let before = text.get(node.start_byte()..place)?;
    let before = before.trim_end().trim_end_matches(['.', '?', ':', '!']).trim_end();
    let is_part = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
    let is_name = before.len() <= LONGEST_FIRST
        && before.starts_with(|c: char| !c.is_ascii_digit())
        && before.chars().all(is_part);
    is_name.then_some(before)
}

/// Returns true if a name is the key of an entry, a label or another name that is neither bound nor looked up.
fn is_label(around: &[Placed<'_>], (node, field, _): Placed<'_>) -> bool {
    let Some((parent, parents_field, _)) = around.last() else { return false };
    let kind = parent.kind();
    match kind {
        "attribute"
        | "property_signature"
        | "method_signature"
        | "abstract_method_signature"
        | "method_elem"
        | "enum_assignment" => field == Some("name"),
        "export_specifier" => field == Some("alias"),
        "keyword_pattern" => parent.named_child(0) == Some(node),
        "literal_element" => {
            *parents_field != Some("value")
                && around.len() > 1
                && around[around.len() - 2].0.kind() == "keyed_element"
        }
        "jsx_opening_element" | "jsx_closing_element" | "jsx_self_closing_element" => {
            field == Some("name")
        }
        "annotation"
        | "marker_annotation"
        | "break_statement"
        | "continue_statement"
        | "enum_body"
        | "jsx_attribute"
        | "jsx_namespace_name"
        | "name_colon"
        | "package_clause"
        | "scoped_identifier"
        | "scoped_type_identifier" => true,
        _ => field == Some("key") || kind.contains("label"),
    }
}

/// Returns the place of the node around a name that binds it.
fn binder(node: Placed<'_>, around: &[Placed<'_>]) -> Option<usize> {
    let mut inner = node;
    for (place, outer) in around.iter().enumerate().rev().take(DEEPEST) {
        let kind = outer.0.kind();
        let field = inner.1.unwrap_or_default();
        // In `{a: b}` of a pattern, the value is bound.
        let is_value = field == "value" && !kind.ends_with("pattern");
        let is_class = kind == "class_pattern" && inner.0.kind() == "dotted_name";
        if is_value || is_class || UNBOUND_FIELDS.contains(&field) || kind.starts_with("augmented")
        {
            return None;
        }
        let is_bound =
            BINDING_FIELDS.iter().any(|(name, kinds)| field == *name && ends_with(kind, kinds));
        if is_bound || BINDING_NODES.contains(&kind) {
            return Some(place);
        }
        if !ends_with(kind, GROUPS)
            && !matches!(kind, "list" | "tuple" | "type")
            && (kind != "dotted_name" || outer.0.named_child_count() > 1)
        {
            return None;
        }
        inner = *outer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    /// Returns the names that are not bound, members with the first name of their expression.
    fn free(language: Language, text: &str) -> Vec<String> {
        let syntax = Syntax::parse(text, language).unwrap();
        assert!(!syntax.has_error(), "{text}");
        let names = NameUses::new(&syntax);
        let free = names.uses().iter().filter(|one| !names.is_bound(one));
        free.map(|one| match one.role {
            UseRole::Bare => one.name.to_owned(),
            UseRole::Member(first) => format!("{}.{}", first.unwrap_or("?"), one.name),
        })
        .collect()
    }

    #[test]
    fn names_that_python_binds() {
        for (text, wanted) in [
            ("import a.b\nfrom c import d as e, f\na.b.x\ne\nf\nd\n", "a.b ?.x d"),
            ("x: int = 1\n(y, [z, *w]) = x, x\nx, y, z, w\nv += x\n", "int v"),
            (
                "for i, (j, k) in a:\n    i + j + k\nwith b as c, d() as (e, f):\n    c, e, f\n",
                "a b d",
            ),
            ("try:\n    pass\nexcept (A, B) as e:\n    e.args\n", "A B e.args"),
            ("def f(a, b=c, *d, e: T = g, **h):\n    return a, b, d, e, h, f\n", "c T g"),
            ("lambda a, b=c: (a, b, d)\n", "c d"),
            ("[a for a in b if a]\na\n{k: v for k, v in c}\n", "b a c"),
            ("if (n := f()) > 1:\n    n\n", "f"),
            (
                "class A(B, metaclass=M):\n    x = 1\n    y = x\n    def f(self):\n        return x, self.x, A\n",
                "B M x self.x",
            ),
            (
                "def f():\n    global g\n    g = 1\n    def h():\n        return g, later\n    later = 2\n",
                "",
            ),
            ("f(a=1).b(c=2)\n\"\".join(d)\n", "f f.a ?.b ?.c ?.join d"),
            (
                "match a:\n    case B(c, d=e) | [c, e]:\n        c, e\n    case f:\n        f\n",
                "a B",
            ),
            (
                "class A:\n    N = 1\n    class B: pass\n    def f(self, n=N, b: B = N) -> B:\n        return N\n    \
                 x = [N for i in range(N)]\n",
                "N range",
            ),
            ("def f():\n    global g\n    g = 1\ng\n", ""),
            ("any((h := i) for i in x)\nh\n", "any x"),
            ("def f[T](x: T) -> T:\n    return x\ntype A = f\nA\n", ""),
            ("# Ends.\na = 1.\nb = a\n# Ends.\nb\n", ""),
            ("self.a = b\nself.a\n", "self b self self.a"),
            ("@d\ndef f(): pass\nf\n", "d"),
        ] {
            assert_eq!(free(Language::Python, text).join(" "), wanted, "{text}");
        }
    }

    #[test]
    fn names_that_other_languages_bind() {
        for (language, text, wanted) in [
            (
                Language::TypeScript,
                "import a, { b as c } from 'm';\nimport * as d from 'n';\nconst { e, f: [g], ...h } = a;\n\
                 function i(j: T, k = c, ...l: T[]) { return d.x(e, g, h, j, k, l, i, m); }\n\
                 const n = (o: T) => o + n;\nfor (const p of q) { p; }\ntry { } catch (r) { r; }\nlet s = { t: u, v };\n",
                "T T d.x m T q u v",
            ),
            (
                Language::JavaScript,
                "const a = require('a');\nlet b = a.c;\nclass D { e() { return this.f + b + g; } }\nx => x + y;\n",
                "a.c this.f g y",
            ),
            (
                Language::Java,
                "import a.B;\nclass C {\n  int d = 1;\n  int f(B g, int... h) {\n    for (B i : g.all()) { i.j(); }\n\
                     int k = d + h[0] + l;\n    Runnable m = () -> n(k);\n    try (B o = g) { } catch (E p) { p.q(); }\n    return k;\n  }\n}\n",
                "g.all i.j l Runnable n E p.q",
            ),
            (
                Language::TypeScript,
                "interface A { title: string; run(a: A): void; [key: string]: A }\nenum B { Red, Blue = 1 }\n\
                 namespace C { export const d = 1; }\ndeclare function e(f: A): A;\ntype G<T> = T extends (infer H)[] ? H : T;\n\
                 class I { #j = 1; k() { return this.#j + B.Red + C.d + e(l); } }\nfunction* m() { }\nm();\nexport { B as n };\n",
                "this.j B.Red C.d l",
            ),
            (
                Language::Java,
                "class A<T> {\n  <Q> Q f(Object o, T t) {\n    if (o instanceof String s) { s.g(); }\n\
                     java.util.List<Q> h = null;\n    return h;\n  }\n}\n",
                "Object String s.g java.util ?.List",
            ),
            (
                Language::Go,
                "package p\n\nimport \"a/b\"\n\nvar c, d = 1, 2\n\nfunc (e T) f(g, h int) (i error) {\n\tj, k := b.X(c)\n\
                 \tfor l, m := range j {\n\t\tn(l, m, k, d, e.o, g, h)\n\t}\n\treturn i\n}\n",
                "T int error b.X n e.o",
            ),
            (
                Language::CSharp,
                "using A;\nclass B {\n  int c = 1;\n  int D(E f, int g = 2) {\n    var h = f.I(c, g);\n    foreach (var j in h) { K(j); }\n\
                     System.Func<int, int> l = m => m + n;\n    return h.Count;\n  }\n}\n",
                "E f.I K System.Func n h.Count",
            ),
        ] {
            let found: Vec<_> = free(language, text)
                .into_iter()
                .filter(|name| name != "System" && name != "var")
                .collect();
            assert_eq!(found.join(" "), wanted, "{language:?}");
        }
    }
}
