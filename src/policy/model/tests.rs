//! Tests of training and of policy files.
