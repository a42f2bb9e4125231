//! Data flow: for each value of a text, the values that it comes from or is computed from. Variables are named by their order.
//!
//! The rules are codebleu's (`parser/DFG.py`, after GraphCodeBERT's), including their oddities. A branch of an `if` begins with
//! the state before the `if`; the state after the `if` combines the states of all branches. The body of a loop is read twice,
//! unless the code around it is being read for the second time: another reading would find nothing new and would double the
//! work of each loop. Columns that tree-sitter counts in bytes are read as characters, so a value after `é` has another text.
//!
//! If codebleu lists names by `list(set(…))`, their order changes with Python's hash seed. Here, names are in the order of the
//! text.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashSet};
use repoformer_text::language::Language;
use repoformer_text::language::syntax::preorder;
use tree_sitter::{Node, Tree};

/// Maximum depth of a text's nodes; a deeper text has no data flow, because Python's stack would overflow.
const DEEPEST: usize = 950;
/// Maximum number of entries per byte of a text: nodes, values, and the names and places of their sources. A text with more has
/// no data flow. Code takes one to three, and ten nested loops take twelve.
const MOST_PER_BYTE: usize = 40;

/// One value, by the number of its variable, and the values from which it stems.
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

/// Kinds of nodes that create data flow in a language.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    language: Language,
    definition: &'static str,
    assignments: &'static [&'static str],
    increment: &'static str,
    /// Parts of an `if` that are read as further branches.
    branches: &'static [&'static str],
    /// A loop over values: its kind, and the fields of its variable and of the values.
    for_each: (&'static str, &'static str, &'static str),
    /// Part of a `for` statement after which everything is read again.
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

/// Returns the data flow of a text, ordered by place.
pub(super) fn data_flow(tree: &Tree, text: &str, rules: Rules) -> Vec<Flow> {
    let Some(mut reader) = Reader::new(tree, text, rules) else {
        return Vec::new();
    };
    match reader.read(tree.root_node(), &mut States::default()) {
        Some(()) => reader.flows(),
        None => Vec::new(),
    }
}

/// A token: its number, and the number of its text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Token {
    place: u32,
    name: u32,
}

/// A value and its sources, before variables are assigned.
struct Edge {
    token: Token,
    relation: Relation,
    names: Vec<u32>,
    places: Vec<Places>,
    /// Whether names and places of several edges were joined, so that duplicates must be removed.
    is_joined: bool,
}

impl Edge {
    fn new(token: Token, relation: Relation, names: Vec<u32>, places: Vec<Places>) -> Self {
        Self { token, relation, names, places, is_joined: false }
    }

    /// Adds the sources of another edge's value.
    fn join(&mut self, other: Self) {
        self.names.extend(other.names);
        self.places.extend(other.places);
        self.is_joined = true;
    }

    fn keep_each_once(&mut self) {
        if self.is_joined {
            let mut seen = HashSet::default();
            self.names.retain(|name| seen.insert(*name));
            self.places.sort_unstable();
            self.places.dedup();
        }
    }
}

/// Whether part of a text is read for the first time or again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    First,
    Again,
}

/// Places at which a value was made: the place with this number or, beyond the number of places, a union in [`Reader::unions`].
type Places = u32;

/// Places at which the value of each name was made.
#[derive(Default)]
struct States {
    places: HashMap<u32, Places>,
    /// Names that were changed, each with its value before the change.
    changed: Vec<(u32, Option<Places>)>,
}

impl States {
    fn set(&mut self, name: u32, places: Places) {
        let before = self.places.insert(name, places);
        self.changed.push((name, before));
    }

    /// Undoes all changes except the first `kept`, and returns the values that they had set.
    fn take_back(&mut self, kept: usize) -> HashMap<u32, Places> {
        let mut after = HashMap::default();
        for (name, before) in self.changed.drain(kept..).rev() {
            after.entry(name).or_insert(self.places[&name]);
            match before {
                Some(before) => self.places.insert(name, before),
                None => self.places.remove(&name),
            };
        }
        after
    }
}

struct Reader {
    rules: Rules,
    /// Tokens by their range of bytes.
    tokens: HashMap<(usize, usize), Token>,
    names: Vec<String>,
    /// Number of places.
    places: u32,
    unions: Vec<Vec<Places>>,
    edges: Vec<Edge>,
    reading: Pass,
    /// Pass in which a loop is read for the second time: [again](Pass::Again), except in the tests.
    second: Pass,
    /// Number of entries that may still be added.
    room: usize,
}

/// Returns true if a node is read as one token.
fn is_token(node: Node<'_>) -> bool {
    let is_text = || matches!(node.kind(), "string_literal" | "string" | "character_literal");
    (node.child_count() == 0 || is_text()) && node.kind() != "comment"
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

impl Reader {
    /// Numbers the tokens; `None` if the tree is too deep.
    fn new(tree: &Tree, text: &str, rules: Rules) -> Option<Self> {
        let lines: Vec<Line<'_>> = text.split('\n').map(Line::new).collect();
        let (mut tokens, mut name_of) = (HashMap::default(), HashMap::default());
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
        (deepest <= DEEPEST).then(|| Self {
            rules,
            tokens,
            names,
            places: place,
            unions: Vec::new(),
            edges: Vec::new(),
            reading: Pass::First,
            second: Pass::Again,
            room: MOST_PER_BYTE * text.len(),
        })
    }

    /// Takes some entries from the remaining number; `None` if not enough remain.
    fn take(&mut self, room: usize) -> Option<()> {
        self.room = self.room.checked_sub(room)?;
        Some(())
    }

    fn push(&mut self, edge: Edge) -> Option<()> {
        self.take(edge.names.len() + edge.places.len())?;
        self.edges.push(edge);
        Some(())
    }

    fn token(&self, node: Node<'_>) -> Option<Token> {
        self.tokens.get(&(node.start_byte(), node.end_byte())).copied()
    }

    /// Returns true if a token is more than a sign or a keyword.
    fn is_value(&self, token: Token, node: Node<'_>) -> bool {
        self.names[token.name as usize] != node.kind()
    }

    /// Returns the values of a node.
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

    /// Reads a node; `None` if codebleu fails.
    fn read(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        self.take(1)?;
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
            self.assign_each(Relation::ComputedFrom, &values, &values, states)
        } else if kind == "if_statement" {
            self.read_if(node, states)
        } else if kind == rules.for_each.0 {
            self.read_for_each(node, states)?;
            self.merge(start)
        } else if kind == "for_statement" {
            self.read_for(node, states)?;
            self.merge(start)
        } else if kind == "while_statement" && rules.language != Language::Go {
            let all = children(node);
            self.read_twice(states, |reader, states, _| reader.read_all(&all, states))?;
            self.merge(start)
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

    /// Reads the repeated part of a loop. The second reading finds everything that further readings would find, also in loops
    /// inside this one.
    fn read_twice(
        &mut self,
        states: &mut States,
        read: impl Fn(&mut Self, &mut States, Pass) -> Option<()>,
    ) -> Option<()> {
        let around = self.reading;
        if around == Pass::First {
            read(self, states, Pass::First)?;
        }
        self.reading = self.second;
        read(self, states, Pass::Again)?;
        self.reading = around;
        Some(())
    }

    fn read_token(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let token = self.token(node)?;
        if !self.is_value(token, node) {
            return Some(());
        }
        let known = states.places.get(&token.name).copied();
        let names = known.map(|_| vec![token.name]).unwrap_or_default();
        if known.is_none() && node.kind() == "identifier" {
            states.set(token.name, token.place);
        }
        self.push(Edge::new(token, Relation::ComesFrom, names, known.into_iter().collect()))
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
            return self.assign_each(Relation::ComesFrom, &names, &values, states);
        }
        for token in names {
            self.push(Edge::new(token, Relation::ComesFrom, Vec::new(), Vec::new()))?;
            states.set(token.name, token.place);
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
    ) -> Option<()> {
        for token in names {
            for value in values {
                self.push(Edge::new(*token, relation, vec![value.name], vec![value.place]))?;
            }
            states.set(token.name, token.place);
        }
        Some(())
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

    /// Reads the right side, and makes an edge from each of its values to each value of the left side.
    fn read_sides(&mut self, left: Node<'_>, right: Node<'_>, states: &mut States) -> Option<()> {
        self.read(right, states)?;
        let (names, values) = (self.values(left)?, self.values(right)?);
        self.assign_each(Relation::ComputedFrom, &names, &values, states)
    }

    /// Reads the right sides, and computes each value of a left side from all values of its right side.
    fn assign_parts(&mut self, sides: &[(Node<'_>, Node<'_>)], states: &mut States) -> Option<()> {
        for (_, right) in sides {
            self.read(*right, states)?;
        }
        for (left, right) in sides {
            let values = self.values(*right)?;
            for token in self.values(*left)? {
                let names = values.iter().map(|value| value.name).collect();
                let places = values.iter().map(|value| value.place).collect();
                self.push(Edge::new(token, Relation::ComputedFrom, names, places))?;
                states.set(token.name, token.place);
            }
        }
        Some(())
    }

    fn read_if(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let before = states.changed.len();
        // Changes in the first branch, and in each of the others.
        let (mut first, mut others) = (HashMap::default(), Vec::new());
        let (mut has_else, mut is_behind) = (false, false);
        for child in children(node) {
            has_else |= child.kind().contains("else");
            let is_branch = self.rules.branches.contains(&child.kind());
            // Except in Python, everything after the first branch is another branch.
            if is_branch || (is_behind && self.rules.language != Language::Python) {
                self.read(child, states)?;
                others.push(self.take_back(states, before)?);
                is_behind = true;
            } else {
                first.drain().for_each(|(name, places)| states.set(name, places));
                self.read(child, states)?;
                first = self.take_back(states, before)?;
            }
        }
        if !has_else || self.rules.language == Language::Go {
            others.push(HashMap::default());
        }
        let branches: Vec<HashMap<u32, Places>> = [first].into_iter().chain(others).collect();
        let names: BTreeSet<u32> = branches.iter().flat_map(HashMap::keys).copied().collect();
        for name in names {
            let known = states.places.get(&name);
            let of = branches.iter().filter_map(|branch| branch.get(&name).or(known));
            let all: Vec<Places> = of.copied().collect();
            self.take(branches.len())?;
            self.unions.push(all);
            states.set(name, self.places + self.unions.len() as u32 - 1);
        }
        Some(())
    }

    /// Undoes the changes of a branch.
    fn take_back(&mut self, states: &mut States, kept: usize) -> Option<HashMap<u32, Places>> {
        self.take(states.changed.len() - kept)?;
        Some(states.take_back(kept))
    }

    fn read_for_each(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let (_, left, right) = self.rules.for_each;
        let (left, right) = (node.child_by_field_name(left)?, node.child_by_field_name(right)?);
        self.read_twice(states, |reader, states, _| {
            if reader.rules.language == Language::Python {
                reader.assign_parts(&parts(left, right), states)?;
                let body = children(node).last().copied();
                return reader
                    .read_all(body.filter(|body| body.kind() == "block").as_slice(), states);
            }
            reader.read_sides(left, right, states)?;
            reader.read(node.child_by_field_name("body")?, states)
        })
    }

    /// Reads a `for` statement like C's: all of it, and then again the part after its head.
    fn read_for(&mut self, node: Node<'_>, states: &mut States) -> Option<()> {
        let all = children(node);
        let head = all.iter().position(|child| child.kind() == self.rules.for_head);
        let (begin, repeated) = all.split_at(head.map_or(all.len(), |head| head + 1));
        self.read_all(begin, states)?;
        let update = head.and_then(|head| all[head].child_by_field_name("update"));
        let update = update.filter(|_| self.rules.language == Language::Go);
        self.read_twice(states, |reader, states, reading| {
            if reading == Pass::Again {
                reader.read_all(update.as_slice(), states)?;
            }
            reader.read_all(repeated, states)
        })
    }

    /// Joins the edges from `start` on that describe the same value in the same way.
    fn merge(&mut self, start: usize) -> Option<()> {
        if self.reading == Pass::Again {
            return Some(()); // The loop around this one does so.
        }
        let mut place_of = HashMap::default();
        for edge in self.edges.split_off(start) {
            let place = *place_of.entry((edge.token, edge.relation)).or_insert(self.edges.len());
            match self.edges.get_mut(place) {
                Some(first) => {
                    self.room = self.room.checked_sub(edge.places.len())?;
                    first.join(edge);
                }
                None => self.push(edge)?,
            }
        }
        self.edges[start..].iter_mut().for_each(Edge::keep_each_once);
        Some(())
    }

    /// Returns the edges of values that stem from others or from which others stem, one per value, with numbers for variables.
    fn flows(mut self) -> Vec<Flow> {
        self.edges.sort_by_key(|edge| edge.token.place);
        let mut is_used = vec![false; self.places as usize + self.unions.len()];
        for edge in self.edges.iter().filter(|edge| !edge.places.is_empty()) {
            is_used[edge.token.place as usize] = true;
            let mut next = edge.places.clone();
            while let Some(places) = next.pop() {
                if !std::mem::replace(&mut is_used[places as usize], true)
                    && let Some(union) = places.checked_sub(self.places)
                {
                    next.extend(&self.unions[union as usize]);
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
        merged.iter_mut().for_each(Edge::keep_each_once);
        let mut number_of: HashMap<u32, u32> = HashMap::default();
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

/// Returns the parts of two sides that belong together: pairwise if both have the same number of parts between commas.
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

/// Returns the text of a node without line ends, where columns in bytes are used as columns in characters.
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
    /// Byte offsets at which characters begin; empty if each character has one byte.
    starts: Vec<usize>,
}

impl<'t> Line<'t> {
    fn new(text: &'t str) -> Self {
        let starts = text.char_indices().map(|(byte, _)| byte);
        Self { text, starts: if text.is_ascii() { Vec::new() } else { starts.collect() } }
    }

    /// Returns the byte offset of a character.
    fn byte(&self, character: usize) -> usize {
        if self.starts.is_empty() {
            character.min(self.text.len())
        } else {
            self.starts.get(character).copied().unwrap_or(self.text.len())
        }
    }
}

#[cfg(test)]
mod tests;
