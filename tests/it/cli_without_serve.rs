//! The program without feature `serve`: its commands are there, and say what they lack.

use crate::support::Place;

#[test]
fn servers_that_are_not_compiled_in_say_how_to_get_them() {
    let place = Place::empty();
    for command in ["serve", "lsp"] {
        let ran = place.run(&[command, "--endpoint", "http://127.0.0.1:9"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains("was built without `serve` and `lsp`"), "{}", ran.stderr);
        assert!(ran.stderr.contains("--features serve"), "{}", ran.stderr);
        assert!(place.run(&[command, "--help"]).stdout.contains("--no-watch"));
    }
}
