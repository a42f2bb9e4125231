//! Data flow: for each value of a text those that it comes from or is computed from, with names for variables by order.
//!
//! The rules are codebleu's (`parser/DFG.py`, after GraphCodeBERT's), their oddities included. A branch of an `if` begins with
//! what was known before it, and what is known after it is known from any branch. The body of a loop is read twice.
//! Columns that tree-sitter counts in bytes are read as characters, so a value behind `é` has another text.
//!
//! Where codebleu lists names by `list(set(…))`, their order changes with Python's hash seed. Here it is that of the text.

use repoformer_text::language::Language;
use repoformer_text::language::syntax::preorder;
use rustc_hash::{FxHashMap, FxHashSet};
use tree_sitter::{Node, Tree};

/// A text whose nodes stand below more others has no data flow: Python's stack would be full.
const DEEPEST: usize = 950;
/// A text has none either where more nodes would have to be read: each loop around another doubles them.
const MOST_READS: u32 = 1_000_000;

/// One value, by the number of its variable, and those that it stems from.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Flow {
    variable: u32,
    relation: Relation,
    from: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Relation {
    ComesFrom,
    ComputedFrom,
}

/// The kinds of nodes that make data flow in a language.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    language: Language,
    definition: &'static str,
    assignments: &'static [&'static str],
    increment: &'static str,
    /// Parts of an `if` that are read as other branches.
    branches: &'static [&'static str],
    /// A loop over values, and the fields of its variable and of them.
    for_each: (&'static str, &'static str, &'static str),
    /// The part of a `for` statement behind which all is read again.
    for_head: &'static str,
}

const PYTHON: Rules = Rules {
    language: Language::Python,
    definition: "default_parameter",
    assignments: &["assignment", "augmented_assignment", "for_in_clause"],
    increment: "",
    branches: &["elif_clause", "else_clause"],
    for_each: ("for_statement", "left", "right"),
    for_head: "",
};
const JAVA: Rules = Rules {
    language: Language::Java,
    definition: "variable_declarator",
    assignments: &["assignment_expression"],
    increment: "update_expression",
    branches: &["if_statement", "else"],
    for_each: ("enhanced_for_statement", "name", "value"),
    for_head: "local_variable_declaration",
};
const CSHARP: Rules = Rules {
    language: Language::CSharp,
    increment: "postfix_unary_expression",
    for_each: ("for_each_statement", "left", "right"),
    ..JAVA
};
const GO: Rules = Rules {
    language: Language::Go,
    definition: "var_spec",
    assignments: &["assignment_statement"],
    increment: "inc_statement",
    for_each: ("", "", ""),
    for_head: "for_clause",
    ..JAVA
};

impl Rules {
    pub(super) fn from_language(language: Language) -> Option<Self> {
        [PYTHON, JAVA, CSHARP, GO].into_iter().find(|rules| rules.language == language)
    }
}

/// The data flow of a text, by place.
pub(super) fn data_flow(tree: &Tree, text: &str, rules: Rules) -> Vec<Flow> {
    let Some(mut reader) = Reader::new(tree, text, rules) else {
        return Vec::new();
    };
    if reader.read(tree.root_node(), &mut States::default()).is_none() {
        return Vec::new();
    }
    reader.flows()
}

/// A token: its number, and that of its text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Token {
    place: u32,
    name: u32,
}

/// A value and where it stems from, not yet by variables.
struct Edge {
    token: Token,
    relation: Relation,
    names: Vec<u32>,
    places: Vec<u32>,
}

impl Edge {
    /// Adds where another edge's value stems from, each name and place once.
    fn join(&mut self, other: Self) {
        self.names.extend(other.names);
        let mut seen = FxHashSet::default();
        self.names.retain(|name| seen.insert(*name));
        self.places.extend(other.places);
        self.places.sort_unstable();
        self.places.dedup();
    }
}

/// For each name the places where its value was made.
type States = FxHashMap<u32, Vec<u32>>;

struct Reader {
    rules: Rules,
    /// By bytes.
    tokens: FxHashMap<(usize, usize), Token>,
    names: Vec<String>,
    edges: Vec<Edge>,
    reads: u32,
}

/// Whether a node is read as one token.
fn is_token(node: Node<'_>) -> bool {
    let is_text = || matches!(node.kind(), "string_literal" | "string" | "character_literal");
    (node.child_count() == 0 || is_text()) && node.kind() != "comment"
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

impl Reader {
    /// Numbers the tokens; `None` where the tree is too deep.
    fn new(tree: &Tree, text: &str, rules: Rules) -> Option<Self> {
        let lines: Vec<Line<'_>> = text.split('\n').map(Line::new).collect();
        let (mut tokens, mut name_of) = (FxHashMap::default(), FxHashMap::default());
        let (mut names, mut place, mut deepest) = (Vec::new(), 0, 0);
        preorder(tree, |node, depth| {
            deepest = deepest.max(depth);
            let is_token = is_token(node);
            if is_token {
                let text = text_of(node, &lines);
                let name = *name_of.entry(text).or_insert_with_key(|text| {
                    names.push(text.clone());
                    names.len() as u32 - 1
                });
                tokens.insert((node.start_byte(), node.end_byte()), Token { place, name });
                place += 1;
            }
            !is_token
        });
        (deepest <= DEEPEST).then_some(Self { rules, tokens, names, edges: Vec::new(), reads: 0 })
    }

    fn token(&self, node: Node<'_>) -> Option<Token> {
        self.tokens.get(&(node.start_byte(), node.end_byte())).copied()
    }

    /// Whether a token is more than a sign or keyword.
    fn is_value(&self, token: Token, node: Node<'_>) -> bool {
        self.names[token.name as usize] != node.kind()
    }

    /// The values of a node.
    fn values(&self, node: Node<'_>) -> Option<Vec<Token>> {
        if is_token(node) {
            let token = self.token(node)?;
            return Some(if self.is_value(token, node) { vec![token] } else { Vec::new() });
        }
        let mut values = Vec::new();
        for child in children(node) {
            values.extend(self.values(child)?);
        }
        Some(values)
    }

    /// Reads a node; `None` where codebleu fails.
    fn read(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        self.reads += 1;
        if self.reads > MOST_READS {
            return None;
        }
        let (rules, kind) = (self.rules, node.kind());
        let start = self.edges.len();
        if is_token(node) {
            self.read_token(node, states)
        } else if kind == rules.definition {
            self.read_definition(node, states)
        } else if rules.assignments.contains(&kind) {
            self.read_assignment(node, states)
        } else if kind == rules.increment {
            let values = self.values(node)?;
            self.assign_each(Relation::ComputedFrom, &values, &values, states);
            Some(())
        } else if kind == "if_statement" {
            self.read_if(node, states)
        } else if kind == rules.for_each.0 {
            self.read_for_each(node, states)?;
            self.merge(start);
            Some(())
        } else if kind == "for_statement" {
            self.read_for(node, states)?;
            self.merge(start);
            Some(())
        } else if kind == "while_statement" && rules.language != Language::Go {
            self.read_all(&children(node), states)?;
            self.read_all(&children(node), states)?;
            self.merge(start);
            Some(())
        } else {
            let (first, rest): (Vec<_>, Vec<_>) = children(node).into_iter().partition(|child| {
                rules.language == Language::Python && child.kind() == "for_in_clause"
            });
            self.read_all(&first, states)?;
            self.read_all(&rest, states)
        }
    }

    fn read_all(&mut self, nodes: &[Node<'_>], states: &mut States) -> Option<()> {
        nodes.iter().try_for_each(|node| self.read(*node, states))
    }

    fn read_token(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let token = self.token(node)?;
        if !self.is_value(token, node) {
            return Some(());
        }
        let known = states.get(&token.name);
        let names = known.map(|_| vec![token.name]).unwrap_or_default();
        let places = known.cloned().unwrap_or_default();
        if known.is_none() && node.kind() == "identifier" {
            states.insert(token.name, vec![token.place]);
        }
        self.edges.push(Edge { token, relation: Relation::ComesFrom, names, places });
        Some(())
    }

    fn read_definition(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let (name, value) = match (self.rules.language, &*children(node)) {
            (Language::CSharp, [name, value]) => (Some(*name), Some(*value)),
            (Language::CSharp, all) => (all.first().copied(), None),
            _ => (node.child_by_field_name("name"), node.child_by_field_name("value")),
        };
        let names = self.values(name?)?;
        if let Some(value) = value {
            let values = self.values(value)?;
            self.read(value, states)?;
            self.assign_each(Relation::ComesFrom, &names, &values, states);
        } else {
            for token in names {
                let (names, places) = Default::default();
                self.edges.push(Edge { token, relation: Relation::ComesFrom, names, places });
                states.insert(token.name, vec![token.place]);
            }
        }
        Some(())
    }

    /// Makes an edge from each value to each name.
    fn assign_each(
        &mut self,
        relation: Relation,
        names: &[Token],
        values: &[Token],
        states: &mut States,
    ) {
        for token in names {
            for value in values {
                let (names, places) = (vec![value.name], vec![value.place]);
                self.edges.push(Edge { token: *token, relation, names, places });
            }
            states.insert(token.name, vec![token.place]);
        }
    }

    fn read_assignment(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let (left, right) = (node.child_by_field_name("left"), node.child_by_field_name("right"));
        if self.rules.language != Language::Python {
            return self.read_sides(left?, right?, states);
        }
        if node.kind() == "for_in_clause" {
            return self.assign_parts(&[(left?, *children(node).last()?)], states);
        }
        match right {
            Some(right) => self.assign_parts(&parts(left?, right), states),
            None => Some(()),
        }
    }

    /// Reads the right side, and makes an edge from each of its values to each of the left.
    fn read_sides(&mut self, left: Node<'_>, right: Node<'_>, states: &mut States) -> Option<()> {
        self.read(right, states)?;
        let (names, values) = (self.values(left)?, self.values(right)?);
        self.assign_each(Relation::ComputedFrom, &names, &values, states);
        Some(())
    }

    /// Reads right sides, and computes each value of a left side from all of its right.
    fn assign_parts(&mut self, sides: &[(Node<'_>, Node<'_>)], states: &mut States) -> Option<()> {
        for (_, right) in sides {
            self.read(*right, states)?;
        }
        for (left, right) in sides {
            let values = self.values(*right)?;
            for token in self.values(*left)? {
                let names = values.iter().map(|value| value.name).collect();
                let places = values.iter().map(|value| value.place).collect();
                self.edges.push(Edge { token, relation: Relation::ComputedFrom, names, places });
                states.insert(token.name, vec![token.place]);
            }
        }
        Some(())
    }

    fn read_if(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let before = states.clone();
        let (mut others, mut has_else, mut is_behind) = (Vec::new(), false, false);
        for child in children(node) {
            has_else |= child.kind().contains("else");
            let is_branch = self.rules.branches.contains(&child.kind());
            // Outside Python all is another branch behind the first one.
            if is_branch || (is_behind && self.rules.language != Language::Python) {
                let mut other = before.clone();
                self.read(child, &mut other)?;
                others.push(other);
                is_behind = true;
            } else {
                self.read(child, states)?;
            }
        }
        if !has_else || self.rules.language == Language::Go {
            others.push(before);
        }
        for (name, places) in others.into_iter().flatten() {
            states.entry(name).or_default().extend(places);
        }
        for places in states.values_mut() {
            places.sort_unstable();
            places.dedup();
        }
        Some(())
    }

    fn read_for_each(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let (_, left, right) = self.rules.for_each;
        let (left, right) = (node.child_by_field_name(left)?, node.child_by_field_name(right)?);
        for _ in 0..2 {
            if self.rules.language == Language::Python {
                self.assign_parts(&parts(left, right), states)?;
                if let Some(body) = children(node).last().filter(|last| last.kind() == "block") {
                    self.read(*body, states)?;
                }
            } else {
                self.read_sides(left, right, states)?;
                self.read(node.child_by_field_name("body")?, states)?;
            }
        }
        Some(())
    }

    /// Reads a `for` of C's kind: all of it, and again what is behind its head.
    fn read_for(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let all = children(node);
        self.read_all(&all, states)?;
        let Some(head) = all.iter().position(|child| child.kind() == self.rules.for_head) else {
            return Some(());
        };
        if let (Language::Go, Some(update)) =
            (self.rules.language, all[head].child_by_field_name("update"))
        {
            self.read(update, states)?;
        }
        self.read_all(&all[head + 1..], states)
    }

    /// Joins the edges from `start` on that tell of one value in the same way.
    fn merge(&mut self, start: usize) {
        let mut place_of = FxHashMap::default();
        for edge in self.edges.split_off(start) {
            let place = *place_of.entry((edge.token, edge.relation)).or_insert(self.edges.len());
            match self.edges.get_mut(place) {
                Some(first) => first.join(edge),
                None => self.edges.push(edge),
            }
        }
    }

    /// The edges of values that stem from others or that others stem from, one a value, with numbers for variables.
    fn flows(mut self) -> Vec<Flow> {
        self.edges.sort_by_key(|edge| edge.token.place);
        let mut is_used = vec![false; self.edges.last().map_or(0, |e| e.token.place as usize + 1)];
        for edge in self.edges.iter().filter(|edge| !edge.places.is_empty()) {
            for place in edge.places.iter().chain([&edge.token.place]) {
                if let Some(is_used) = is_used.get_mut(*place as usize) {
                    *is_used = true;
                }
            }
        }
        let mut merged: Vec<Edge> = Vec::new();
        for edge in self.edges.into_iter().filter(|edge| is_used[edge.token.place as usize]) {
            match merged.last_mut() {
                Some(last) if last.token == edge.token => {
                    last.relation = edge.relation;
                    last.join(edge);
                }
                _ => merged.push(edge),
            }
        }
        let mut number_of: FxHashMap<u32, u32> = FxHashMap::default();
        let mut number = |name: u32| {
            let next = number_of.len() as u32;
            *number_of.entry(name).or_insert(next)
        };
        let flow = |edge: Edge| Flow {
            from: edge.names.into_iter().map(&mut number).collect(),
            relation: edge.relation,
            variable: number(edge.token.name),
        };
        merged.into_iter().map(flow).collect()
    }
}

/// Parts of two sides that belong together: one by one where both have as many between their commas.
fn parts<'t>(left: Node<'t>, right: Node<'t>) -> Vec<(Node<'t>, Node<'t>)> {
    let of = |side| {
        let mut parts = children(side);
        parts.retain(|part| part.kind() != ",");
        parts
    };
    let (lefts, rights) = (of(left), of(right));
    if lefts.len() == rights.len() && !lefts.is_empty() {
        lefts.into_iter().zip(rights).collect()
    } else {
        vec![(left, right)]
    }
}

/// The text of a node without ends of lines, between columns of bytes that are taken for characters.
fn text_of(node: Node<'_>, lines: &[Line<'_>]) -> String {
    let (start, end) = (node.start_position(), node.end_position());
    let mut text = String::new();
    for (row, line) in lines.iter().enumerate().take(end.row + 1).skip(start.row) {
        let from = if row == start.row { line.byte(start.column) } else { 0 };
        let to = if row == end.row { line.byte(end.column) } else { line.text.len() };
        text.push_str(&line.text[from..to]);
    }
    text
}

struct Line<'t> {
    text: &'t str,
    /// The bytes where characters begin; empty where each has one byte.
    starts: Vec<usize>,
}

impl<'t> Line<'t> {
    fn new(text: &'t str) -> Self {
        let starts = text.char_indices().map(|(byte, _)| byte);
        Self { text, starts: if text.is_ascii() { Vec::new() } else { starts.collect() } }
    }

    /// The byte of a character.
    fn byte(&self, character: usize) -> usize {
        match self.starts.is_empty() {
            true => character.min(self.text.len()),
            false => self.starts.get(character).copied().unwrap_or(self.text.len()),
        }
    }
}
