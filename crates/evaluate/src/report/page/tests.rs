use super::super::tests::{alone, report};
use super::super::{BaselineComparison, ChartPage, IndexPage, ReportContents};
use super::finding::{ReportFinding, format_signed};
use super::policy::{SCRIPTS, STYLES};
use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::statistics::Interval;

#[test]
fn every_slot_of_the_skeleton_is_filled() {
    for piece in SKELETON.split("{{").skip(1) {
        let (slot, _) = piece.split_once("}}").unwrap();
        assert!(
            slot == "data"
                || !fill(slot, &report(), &Lengths::new(&report())).is_empty()
                || ["notes", "version", "provenance"].contains(&slot),
            "{slot}"
        );
    }
    assert_eq!(fill("unknown", &report(), &Lengths::new(&report())), "");
}

/// Nothing in a script or style sheet ends the element that contains it.
#[test]
fn scripts_and_styles_stay_in_their_elements() {
    for source in SCRIPTS.iter().chain(&STYLES) {
        let source = source.to_lowercase();
        assert!(!source.contains("</") && !source.contains("<!--") && !source.contains("{{"));
        assert!(
            !source.contains("http:") && !source.contains("https:") && !source.contains("url(")
        );
        assert!(!source.contains("innerhtml"), "texts become text nodes");
    }
}

/// Returns the text between the first tags of a name.
fn content<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

/// If this fails, write the digests in the message into `policy.rs`.
#[test]
fn policies_allow_the_pages_own_script_and_style_alone() {
    let (chart, index) = (ChartPage::default().html(), IndexPage::default().html());
    let pages = [("tasks", report().page()), ("chart", chart), ("index", index)];
    for (name, page) in pages {
        let (_, policy) = page.split_once("Content-Security-Policy\" content=\"").unwrap();
        let (policy, _) = policy.split_once("\">").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(!policy.contains("connect") && !policy.contains("http"), "{policy}");
        let style = format!("style-src 'sha256-{}';", digest(content(&page, "style").unwrap()));
        assert!(policy.contains(&style), "{name}: {style} is not in {policy}");
        match content(&page, "script") {
            None => assert!(name != "tasks" && !policy.contains("script"), "{name}: {policy}"),
            Some(script) => {
                let script = format!("script-src 'sha256-{}';", digest(script));
                assert!(policy.contains(&script), "{name}: {script} is not in {policy}");
            }
        }
        // The policy would break styles or scripts in attributes.
        let page = page.replace(content(&page, "script").unwrap_or("no script"), "");
        let tags = page.split('<').skip(1).filter_map(|tag| tag.split_once('>')).map(|tag| tag.0);
        for names in tags.flat_map(|tag| tag.split('"').step_by(2)) {
            assert!(!names.contains(" style") && !names.contains(" on"), "{name}: {names}");
        }
        assert_eq!(page.matches("<style").count(), 1, "{name}");
    }
}

/// The page's data and text contain no markup except the program's own: as many scripts end as begin.
#[test]
fn hostile_texts_are_escaped() {
    let hostile = "</script><script>alert(1)</script>{{data}}\u{202e}";
    let mut report = report();
    report.title = hostile.into();
    report.notes = vec![hostile.into()];
    report.systems[1].name = hostile.into();
    report.systems[1].settings = vec![(hostile.into(), hostile.into())];
    report.provenance = vec![(hostile.into(), hostile.into())];
    report.measures[1].title = hostile.into();
    report.tasks[0].id = hostile.into();
    report.tasks[0].target = hostile.into();
    let page = report.page();
    assert!(!page.contains("alert(1)</script>") && !page.contains('\u{202e}'));
    assert!(
        page.contains(
            "<h1>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{data}}⟨U+202E⟩</h1>"
        )
    );
    let plain = super::super::tests::report().page();
    assert_eq!(page.matches("</script>").count(), plain.matches("</script>").count());
    for (name, svg) in report.figures() {
        assert!(!svg.contains("<script") && !name.contains('<'), "{name}");
    }
}

/// Counted in the report of the tests: better on one of three tasks, worse on one.
#[test]
fn the_finding_is_a_sentence() {
    let html = |report: &ReportContents| ReportFinding::new(report).html();
    let mut report = report();
    let counts = "<b>rg1</b> is better than <b>none</b> on 1 of 3 tasks and worse on 1";
    assert_eq!(html(&report), format!("{counts}."));
    report.systems[1].comparison = Some(BaselineComparison {
        mean_difference: -0.1333,
        interval: Some(Interval { low: -0.5, high: 0.1 }),
        p_tasks: Some(0.4),
        p_repositories: Some(1.0),
    });
    assert_eq!(
        html(&report),
        format!(
            "{counts}: ES (repocoder) <span class=\"nowrap\">\u{2212}13.33 [\u{2212}50.00, +10.00]</span>, which may be chance."
        )
    );
    let few = ReportContents { few: Some(3), ..report.clone() };
    assert_eq!(
        html(&few),
        format!(
            "{counts}: ES (repocoder) <span class=\"nowrap\">\u{2212}13.33, range [\u{2212}50.00, +10.00]</span> over 3 repositories, too few to \
             tell it from chance."
        )
    );
    let table = systems::table(&few);
    assert!(
        table.contains("<span class=\"value same\">\u{2212}13.33</span> <small>range ["),
        "{table}"
    );
    assert!(table.contains("p (tasks) = 0.400<br>p (repositories) = 1.000"), "{table}");
    assert_eq!(html(&alone()), "<b>rg1</b> on 3 of 4 tasks: ES (repocoder) 60.00 [50.00, 70.00].");
    assert_eq!(html(&ReportContents::default()), "No system was measured.");
}

#[test]
fn numbers_are_set_for_readers() {
    assert_eq!(
        [format_signed(0.0541), format_signed(-0.2), format_signed(0.00001)],
        ["+5.41", "\u{2212}20.00", "0.00"]
    );
}

#[test]
fn settings_that_all_share_stand_apart() {
    let html = systems::settings(&report());
    assert!(
        html.contains("<tr><th scope=\"row\">mode</th><td>none</td><td>rg1</td></tr>"),
        "{html}"
    );
    assert!(html.contains("<div><dt>seed</dt><dd>0</dd></div>"));
}
