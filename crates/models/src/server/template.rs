//! Templates into which a server puts prompts.

use serde_json::json;

use crate::endpoint::Endpoint;

/// Template of an Ollama model that changes prompts at `/v1/completions`: it is made for conversations, or for what stands before
/// and after the cursor, and prompts of this program have the model's own tokens already. `None` where prompts stay as they are,
/// or the server is another.
pub fn changing_template(endpoint: &Endpoint, model: &str) -> Option<String> {
    let listed = endpoint.get_json("/v1/models").ok()?;
    let mut models = listed["data"].as_array()?.iter();
    // As Ollama alone says.
    models.find(|one| one["owned_by"] == "library")?;
    let shown = endpoint.post_json("/api/show", &json!({"model": model})).ok()?;
    let template = shown["template"].as_str()?.trim();
    let plain: String = template.split_whitespace().collect();
    (!plain.is_empty() && plain != "{{.Prompt}}").then(|| template.to_owned())
}
