//! Fractions of common subtrees and data flow, for two texts alone, with subtrees in tree-sitter's notation.

use super::*;

/// Returns the fractions of the query's subtrees and of its data flow that the document has.
pub(in crate::retrieve::rank) fn shares(
    query: &str,
    document: &str,
    language: Language,
) -> [f64; 2] {
    let [query, mut document] = [query, document].map(|text| {
        let text = source::bare(text, language);
        let tree = Parser::new(language).unwrap().parse(&text, "", None).unwrap();
        let (mut found, mut next) = (Vec::new(), vec![tree.root_node()]);
        while let Some(node) = next.pop() {
            found.push(node.to_sexp());
            let children = node.children(&mut node.walk()).collect::<Vec<_>>();
            next.extend(children.into_iter().filter(|child| child.child_count() > 0));
        }
        (found, data_flow::data_flow(&tree, &text, Rules::from_language(language).unwrap()))
    });
    let common = query.0.iter().filter(|subtree| document.0.contains(subtree)).count();
    let syntax = common as f64 / query.0.len() as f64;
    let mut flows = 0;
    for flow in &query.1 {
        if let Some(at) = document.1.iter().position(|other| other == flow) {
            document.1.remove(at);
            flows += 1;
        }
    }
    [syntax, if flows == 0 { 1.0 } else { f64::from(flows) / query.1.len() as f64 }]
}
