//! Names that a text binds and uses, with their scopes.

use std::ops::Range;

use foldhash::HashSet;
use tree_sitter::Node;

use super::{Binding, Syntax};
use crate::language::BlockMarks;

/// Name in a text that does not bind it.
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
    /// A member after a dot, or the name of an argument. The value is the first name of the expression, such as `a` in `a.b().c` and in
    /// `a.f(c=1)`; it is `None` if the expression begins with something else, such as a string.
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
    /// Scopes by number, each before those within it.
    scopes: Vec<Scope>,
}

#[derive(Debug, Clone, Copy)]
struct Scope {
    /// The scope around it; its own number if there is none.
    outer: usize,
    /// Whether it is a class whose names its functions see only as members.
    is_class: bool,
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
        ],
    ),
    (
        "left",
        &[
            "assignment", "for_statement", "for_in_clause", "for_in_statement", "range_clause",
            "short_var_declaration", "foreach_statement", "receive_statement",
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
    "inferred_parameters",
    "lambda_parameters",
    "nonlocal_statement",
    "parameters",
    "parenthesized_variable_designation",
];

/// Endings of the kinds of nodes in which several names are bound together.
const GROUPS: &[&str] =
    &["pattern", "expression_list", "typed_parameter", "pattern_list", "tuple_expression"];

/// Endings of the kinds of nodes that are names.
const NAMES: &[&str] = &["identifier", "identifier_pattern", "implicit_parameter"];

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

/// Node, with the field of its parent that it is in.
type Placed<'tree> = (Node<'tree>, Option<&'tree str>);

impl<'a> NameUses<'a> {
    /// Finds the names in a tree. Names in imports only bind.
    pub fn new(syntax: &Syntax<'a>) -> Self {
        let mut all = Self {
            uses: Vec::new(),
            bound: HashSet::default(),
            scopes: vec![Scope { outer: 0, is_class: false }],
        };
        let mut cursor = syntax.tree().walk();
        let mut around: Vec<Placed<'_>> = Vec::new();
        // Number of the scope around each node in `around`, and of the current one.
        let mut scopes = vec![0];
        loop {
            let node = (cursor.node(), cursor.field_name());
            let scope = scopes.last().copied().unwrap_or_default();
            if let Some(inner) = all.enter(syntax, node, &around, scope)
                && cursor.goto_first_child()
            {
                around.push(node);
                scopes.push(inner);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return all;
                }
                around.pop();
                scopes.pop();
            }
        }
    }

    /// Returns the names that are used, in the order of the text.
    pub fn uses(&self) -> &[NameUse<'a>] {
        &self.uses
    }

    /// Returns true if a name is bound in a scope that its use sees. Bindings may come later in the text.
    pub fn is_bound(&self, one: &NameUse<'_>) -> bool {
        if one.role != UseRole::Bare {
            return false;
        }
        let mut number = one.scope;
        for depth in 0..DEEPEST {
            let Scope { outer, is_class } = self.scopes[number];
            if (depth == 0 || !is_class) && self.bound.contains(&(number, one.name)) {
                return true;
            }
            if number == outer {
                return false;
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
        let imports = syntax.imports_of(node.0);
        if !imports.is_empty() {
            for import in imports {
                let local = match import.binding {
                    Binding::Member { local, .. } | Binding::Whole { local } => local,
                    Binding::All | Binding::Nothing => continue,
                };
                self.bound.insert((scope, local.split('.').next().unwrap_or(local)));
            }
            return None;
        }
        let is_class = spec.is_named_type(kind);
        if is_class
            || spec.is_function(kind)
            || NAMELESS_SCOPES.contains(&kind) && node.0.is_named()
        {
            let is_class = is_class && spec.layout == BlockMarks::Indentation;
            self.scopes.push(Scope { outer: scope, is_class });
            return Some(self.scopes.len() - 1);
        }
        if node.0.child_count() == 0 && ends_with(kind, NAMES) {
            self.add(syntax, node, around, scope);
        }
        Some(scope)
    }

    fn add(&mut self, syntax: &Syntax<'a>, one: Placed<'_>, around: &[Placed<'_>], scope: usize) {
        let (text, (node, field)) = (syntax.text(), one);
        let name = syntax.of(node);
        let Some((parent, _)) = around.last() else { return };
        let role = if is_member(&text[..node.start_byte()]) {
            let mut outer = around.iter().rev().take(DEEPEST);
            let whole = outer.find(|(outer, _)| outer.start_byte() < node.start_byte());
            UseRole::Member(whole.and_then(|(whole, _)| first_name(text, *whole)))
        } else if parent.kind() == "keyword_argument" && field == Some("name") {
            let call = around.iter().rev().nth(2).filter(|(call, _)| call.kind() == "call");
            UseRole::Member(call.and_then(|(call, _)| first_name(text, *call)))
        } else if is_label(*parent, one) {
            return;
        } else if let Some(place) = binder(one, around) {
            // A definition binds its own name around it.
            let spec = syntax.spec();
            let (holder, _) = around[place];
            let is_own = place + 1 == around.len()
                && (spec.is_named_type(holder.kind()) || spec.is_function(holder.kind()));
            let scope = if is_own { self.scopes[scope].outer } else { scope };
            self.bound.insert((scope, name));
            return;
        } else {
            UseRole::Bare
        };
        self.uses.push(NameUse { name, bytes: node.byte_range(), role, scope });
    }
}

fn ends_with(kind: &str, endings: &[&str]) -> bool {
    endings.iter().any(|ending| kind.ends_with(ending))
}

/// Returns true if a text ends with the dot before a member.
fn is_member(before: &str) -> bool {
    let before = before.trim_end();
    (before.ends_with('.') && !before.ends_with("..")) || before.ends_with("::")
}

/// Returns the name with which a node begins, unless it is very long.
fn first_name<'a>(text: &'a str, node: Node<'_>) -> Option<&'a str> {
    let rest = &text[node.start_byte()..];
    let is_part = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
    let read = rest.char_indices().take(LONGEST_FIRST + 1);
    let end = read.clone().find(|(_, c)| !is_part(*c)).map(|(end, _)| end);
    let end = match end {
        Some(end) => end,
        None if read.count() > LONGEST_FIRST => return None,
        None => rest.len(),
    };
    let name = &rest[..end];
    let is_name =
        name.starts_with(|c: char| !c.is_ascii_digit()) && !rest[end..].starts_with(['"', '\'']);
    is_name.then_some(name)
}

/// Returns true if a name is the key of an entry, or a label: it is neither bound nor looked up.
fn is_label(parent: Node<'_>, (node, field): Placed<'_>) -> bool {
    let kind = parent.kind();
    field == Some("key")
        || kind == "attribute" && field == Some("name")
        || kind.contains("label")
        || kind == "keyword_pattern" && parent.named_child(0) == Some(node)
        || matches!(
            kind,
            "name_colon"
                | "package_clause"
                | "annotation"
                | "marker_annotation"
                | "break_statement"
                | "continue_statement"
                | "literal_element"
        )
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
            && !matches!(kind, "list" | "tuple")
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
            ("import a.b\nfrom c import d as e, f\na.b.x\ne\nf\nd\n", "a.b a.x d"),
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
                "B ?.metaclass M x self.x",
            ),
            (
                "def f():\n    global g\n    g = 1\n    def h():\n        return g, later\n    later = 2\n",
                "",
            ),
            ("f(a=1).b(c=2)\n\"\".join(d)\n", "f f.a f.b f.c ?.join d"),
            (
                "match a:\n    case B(c, d=e) | [c, e]:\n        c, e\n    case f:\n        f\n",
                "a B",
            ),
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
