//! Clusters of texts, by TF-IDF vectors and k-means. Repoformer uses such clusters to draw varied training data from a
//! repository (algorithms 1 and 2 of its appendix D).

mod k_means;
mod tf_idf;

pub use k_means::k_means;
pub use tf_idf::TfIdfVectors;
