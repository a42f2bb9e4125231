//! Prompt templates of servers.

use serde_json::json;

use crate::endpoint::Endpoint;

/// Returns the template of an Ollama model if it changes prompts at `/v1/completions`: such a template is for conversations, or for text
/// before and after the cursor, while prompts of this program already contain the model's own tokens. `None` if prompts are sent unchanged,
/// or if the server is not Ollama.
pub fn changing_template(endpoint: &Endpoint, model: &str) -> Option<String> {
    let listed = endpoint.get_json("/v1/models").ok()?;
    let mut models = listed["data"].as_array()?.iter();
    // Only Ollama sends this owner.
    models.find(|one| one["owned_by"] == "library")?;
    let shown = endpoint.post_json("/api/show", &json!({"model": model})).ok()?;
    let template = shown["template"].as_str()?.trim();
    let plain: String = template.split_whitespace().collect();
    (!plain.is_empty() && plain != "{{.Prompt}}").then(|| template.to_owned())
}
