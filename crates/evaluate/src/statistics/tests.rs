use chacha20::rand_core::Rng;
use proptest::prelude::*;
use serde_json::Value;

use super::stream::{RESAMPLES, SIGN_FLIPS, Streams};
use super::*;

/// Returns the results of numpy and scipy; see tests/fixtures/statistics/record.py.
fn recorded(name: &str) -> Vec<Value> {
    let recorded = include_str!("../../../../tests/fixtures/statistics/expected.json");
    let mut recorded: Value = serde_json::from_str(recorded).unwrap();
    let cases = recorded[name].take();
    assert!(cases.as_array().is_some_and(|cases| cases.len() >= 4));
    cases.as_array().unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    let numbers = value.as_array().unwrap().iter();
    numbers.map(|number| number.as_f64().unwrap()).collect()
}

/// Returns the values of repositories one after another, and their groups.
fn repositories(groups: &Value) -> (Vec<f64>, Groups) {
    let groups = groups.as_array().unwrap().iter().map(numbers);
    let (mut values, mut names) = (Vec::new(), Vec::new());
    for (group, number) in groups.zip(0..) {
        names.extend(group.iter().map(|_| format!("r{number}")));
        values.extend(group);
    }
    (values, named(&names))
}

fn named(repositories: &[String]) -> Groups {
    Groups::new(repositories.iter().map(|name| Some(&**name)))
}

mod bootstrap {
    use super::*;

    /// Every resample of 3 to 6 repositories, by numpy: the percentiles are at values whose exact shares are near 2.5 %.
    #[test]
    fn percentiles_are_those_of_all_resamples() {
        for case in recorded("bootstrap") {
            let (values, groups) = repositories(&case["groups"]);
            for seed in 0..5 {
                let resampling = Resampling { seed, ..Resampling::default() };
                let Interval { low, high } = resampling.interval(&groups, &values).unwrap();
                for (end, wanted) in [(low, numbers(&case["low"])), (high, numbers(&case["high"]))]
                {
                    let range = wanted[0] - 1e-12..=wanted[1] + 1e-12;
                    assert!(range.contains(&end), "{end} {case}");
                }
            }
        }
    }

    /// The closed form for many tasks agrees with resampling.
    #[test]
    fn many_tasks_have_the_interval_of_endless_resamples() {
        let value = |task: usize| [0.0, 0.1, 0.35, 0.5, 1.0, 1.0][task * 7 % 6];
        let values: Vec<f64> = (0..6_000).map(value).collect();
        let resampling = Resampling::default();
        let many = resampling.interval(&Groups::tasks(6_000), &values).unwrap();
        // Repositories with one task each are resampled, however many there are.
        let names: Vec<String> = (0..6_000).map(|task| task.to_string()).collect();
        let drawn = resampling.interval(&named(&names), &values).unwrap();
        let width = drawn.high - drawn.low;
        for (known, drawn) in [(many.low, drawn.low), (many.high, drawn.high)] {
            // Three standard errors of a percentile of 10,000 resamples are 4 % of half the width.
            assert!((known - drawn).abs() < 0.02 * width, "{known} {drawn} {width}");
        }
        let other = Resampling { seed: 1, ..resampling };
        assert_eq!(other.interval(&Groups::tasks(6_000), &values), Some(many));
    }

    /// By hand, for the means 0, 1, …, 98 of 99 resamples at 90 %: k = ⌊100 × 0.05⌋ = 5, so the interval goes from the 5th
    /// smallest to the 5th largest.
    #[test]
    fn the_middle_leaves_out_as_many_below_as_above() {
        let middle = |number: usize, level| {
            let means = (0..number).rev().map(|mean| mean as f64).collect();
            super::super::bootstrap::middle(means, level).map(|i| (i.low, i.high))
        };
        assert_eq!(middle(99, 0.9), Some((4.0, 94.0)));
        assert_eq!(middle(999, 0.95), Some((24.0, 974.0)));
        assert_eq!(middle(10_000, 0.95), Some((249.0, 9750.0)));
        // Too few to leave any out.
        assert_eq!(middle(10, 0.95), Some((0.0, 9.0)));
        assert_eq!(middle(1, 0.95), Some((0.0, 0.0)));
        assert_eq!(middle(0, 0.95), None);
    }

    /// Resamples the plain way: with the same draws, but collecting tasks one by one.
    fn plain(groups: &[Vec<f64>], resampling: &Resampling) -> Vec<f64> {
        let streams = Streams::new(RESAMPLES, resampling.seed);
        let n = groups.len() as u64;
        let mean = |number: usize| {
            let mut stream = streams.get(number);
            let mut tasks: Vec<f64> = Vec::new();
            for _ in 0..n {
                // Each group has the same number of the first values; the rest is rejected.
                let group = loop {
                    let product = u128::from(stream.next_u32()) * u128::from(n);
                    if product % (1 << 32) >= (1 << 32) % u128::from(n) {
                        break (product >> 32) as usize;
                    }
                };
                tasks.extend(&groups[group]);
            }
            tasks.iter().sum::<f64>() / tasks.len() as f64
        };
        let mut means: Vec<f64> = (0..resampling.resamples).map(mean).collect();
        means.sort_by(f64::total_cmp);
        means
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn totals_by_group_are_as_good_as_tasks_one_by_one(
            groups in prop::collection::vec(prop::collection::vec(0.0..1.0f64, 1..6), 2..30),
            seed in 0..100u64,
        ) {
            let resampling = Resampling { resamples: 199, level: 0.9, seed };
            let sum = |group: &[f64]| group.iter().sum::<f64>();
            let mut ordered = groups.clone();
            ordered.sort_by(|a, b| a.len().cmp(&b.len()).then(sum(a).total_cmp(&sum(b))));
            let means = plain(&ordered, &resampling);
            let name = |(n, group): (usize, &Vec<f64>)| vec![format!("{n:03}"); group.len()];
            let names: Vec<String> = groups.iter().enumerate().flat_map(name).collect();
            let interval = resampling.interval(&named(&names), &groups.concat()).unwrap();
            // ⌊200 × 0.05⌋ = 10
            prop_assert!((interval.low - means[9]).abs() < 1e-12);
            prop_assert!((interval.high - means[189]).abs() < 1e-12);
        }
    }

    #[test]
    fn what_cannot_be_drawn_has_no_interval() {
        let two = Groups::new([Some("a"), Some("b")]);
        let intervals = Resampling::default()
            .intervals(&two, [[Some(0.5), None], [Some(0.5), Some(0.5)], [None, None]]);
        let point = Interval { low: 0.5, high: 0.5 };
        assert_eq!(intervals, [None, Some(point), None], "one repository has a value, two, none");
        assert_eq!(Resampling::default().interval(&Groups::tasks(0), &[]), None);
        let never = Resampling { resamples: 0, ..Resampling::default() };
        assert_eq!(never.interval(&two, &[0.0, 1.0]), None);
        let none: [Vec<Option<f64>>; 0] = [];
        assert_eq!(Resampling::default().intervals(&two, none), []);
    }

    /// A task without a value does not count in any mean. By hand, the mean of {a: 1, b: (0)} is 1 or 0; b's second task is
    /// ignored.
    #[test]
    fn a_task_without_value_is_passed_over() {
        let groups = Groups::new(["a", "b", "b"].map(Some));
        let lacking = [Some(1.0), Some(0.0), None];
        let intervals = Resampling::default().intervals(&groups, [lacking]);
        assert_eq!(intervals[0], Some(Interval { low: 0.0, high: 1.0 }));
        let half = Resampling { level: 0.4, ..Resampling::default() };
        // Half of the resamples draw each repository once: (1 + 0) / 2 and not (1 + 0 + 0) / 3.
        assert_eq!(half.intervals(&groups, [lacking])[0], Some(Interval { low: 0.5, high: 0.5 }));
    }
}

mod permutation {
    use super::*;

    fn test(differences: &[f64]) -> PermutationTest {
        SignFlips::default().test(&Groups::tasks(differences.len()), differences)
    }

    /// The exact test is scipy's; for exact match it is McNemar's, by scipy's binomial test.
    #[test]
    fn exact_as_scipy() {
        let of_case = |name: &str, case: &Value| match name {
            "sign_flips" => test(&numbers(&case["differences"])),
            "by_repository" => {
                let (differences, groups) = repositories(&case["groups"]);
                SignFlips::default().test(&groups, &differences)
            }
            _ => {
                let [better, worse] =
                    ["better", "worse"].map(|n| case[n].as_u64().unwrap() as usize);
                let found = test(&[vec![1.0; better], vec![0.0; 7], vec![-1.0; worse]].concat());
                assert_eq!(found.units, better + worse);
                found
            }
        };
        for name in ["sign_flips", "by_repository", "mcnemar"] {
            for case in recorded(name) {
                let found = of_case(name, &case);
                assert!(found.exact);
                assert!((found.p - case["p"].as_f64().unwrap()).abs() < 1e-12, "{found:?} {case}");
            }
        }
    }

    /// Hundreds of differences: p is close to the p of the normal distribution, by scipy.
    #[test]
    fn random_flips_come_near_the_normal_distribution() {
        for case in recorded("many") {
            let wanted = case["p"].as_f64().unwrap();
            let differences = numbers(&case["differences"]);
            let groups = Groups::tasks(differences.len());
            for seed in 0..3 {
                let found = SignFlips { seed, ..SignFlips::default() }.test(&groups, &differences);
                assert!(!found.exact);
                // Five standard deviations of the flips, and a margin for the approximation.
                let near = 5.0 * (wanted * (1.0 - wanted) / 100_000.0).sqrt() + 0.004;
                assert!((found.p - wanted).abs() < near, "{found:?} {wanted}");
            }
        }
    }

    #[test]
    fn the_least_and_the_greatest_p() {
        assert_eq!(test(&[]), PermutationTest { p: 1.0, exact: true, units: 0 });
        assert_eq!(test(&[0.0; 100]).p, 1.0, "nothing differs");
        assert_eq!(test(&[1e-12, -1e-13]).units, 0, "rounding is no difference");
        // No flip of a hundred equal differences is as far from 0; p is never 0.
        assert_eq!(test(&[0.5; 100]).p, 1.0 / 100_001.0);
        // At the limit of the exact test: 2 of 2³⁰.
        let limit = test(&[0.1; 30]);
        assert_eq!((limit.p, limit.exact), (2.0 / f64::from(1 << 30), true));
        assert!(!test(&[0.1; 31]).exact);
    }

    /// Counts every flip, one after another.
    fn plain(differences: &[f64]) -> f64 {
        let all = 1u64 << differences.len();
        let sum = |signs: u64| -> f64 {
            let sign = |place: usize| if signs >> place & 1 == 1 { 1.0 } else { -1.0 };
            differences.iter().enumerate().map(|(place, d)| sign(place) * d).sum()
        };
        let observed = sum(all - 1).abs();
        let extreme = (0..all).filter(|signs| sum(*signs).abs() >= observed - 1e-9).count();
        extreme as f64 / all as f64
    }

    /// Orders by value; of the two directions, the one that negated values also get.
    fn ordered(differences: &[f64]) -> Vec<f64> {
        let sorted = |sign: f64| {
            let mut all: Vec<f64> = differences.iter().map(|d| d * sign).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (up, down) = (sorted(1.0), sorted(-1.0));
        if up < down { down.iter().map(|d| -d).collect() } else { up }
    }

    /// Applies random flips one sign at a time, from the same bytes.
    fn plain_random(differences: &[f64], flips: &SignFlips) -> f64 {
        let streams = Streams::new(SIGN_FLIPS, flips.seed);
        let observed: f64 = differences.iter().sum::<f64>().abs();
        let (mut extreme, mut left, mut block) = (0, flips.flips, 0);
        while left > 0 {
            let mut stream = streams.get(block);
            let mut sums = [0.0; 1024];
            for eight in differences.chunks(8) {
                let mut signs = [0u8; 1024];
                stream.fill_bytes(&mut signs);
                for (sum, sign) in sums.iter_mut().zip(signs) {
                    for (place, difference) in eight.iter().enumerate() {
                        *sum += if sign >> place & 1 == 1 { *difference } else { -difference };
                    }
                }
            }
            let now = left.min(1024);
            extreme += sums[..now].iter().filter(|sum| sum.abs() >= observed - 1e-9).count();
            (left, block) = (left - now, block + 1);
        }
        (1 + extreme) as f64 / (1 + flips.flips) as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn halves_are_as_good_as_every_flip(sixths in prop::collection::vec(-6..=6i8, 0..13)) {
            // Sixths often tie, and their sums are inexact.
            let differences: Vec<f64> = sixths.iter().map(|n| f64::from(*n) / 6.0).collect();
            let found = test(&differences);
            prop_assert!((found.p - plain(&differences)).abs() < 1e-12, "{:?}", found);
            let turned: Vec<f64> = differences.iter().map(|d| -d).collect();
            prop_assert_eq!(test(&turned), found);
            let reversed: Vec<f64> = differences.iter().rev().copied().collect();
            prop_assert_eq!(test(&reversed), found, "the order of the tasks");
        }

        #[test]
        fn bytes_of_signs_are_as_good_as_single_ones(
            twelfths in prop::collection::vec(-12..=13i8, 40..90),
            seed in 0..20u64,
            flips in 1..3000usize,
        ) {
            let differences: Vec<f64> =
                twelfths.iter().filter(|n| **n != 0).map(|n| f64::from(*n) / 12.0).collect();
            let flips = SignFlips { flips, seed };
            let found = flips.test(&Groups::tasks(differences.len()), &differences);
            prop_assume!(!found.exact);
            prop_assert_eq!(found.p, plain_random(&ordered(&differences), &flips));
        }
    }
}

/// Other names, and another order of the tasks, change neither an interval nor a test; negated values have the negated
/// interval.
#[test]
fn results_depend_on_values_alone() {
    let values: Vec<f64> = (0..40).map(|n| f64::from(n * n % 17) / 17.0 - 0.3).collect();
    let names = |of: &dyn Fn(usize) -> usize| -> Vec<String> {
        (0..40).map(|task| format!("r{:02}", of(task / 3))).collect()
    };
    let (resampling, flips) = (Resampling::default(), SignFlips::default());
    let (one, other) = (named(&names(&|n| n)), named(&names(&|n| n * 5 % 14)));
    let interval = resampling.interval(&one, &values).unwrap();
    assert_eq!(resampling.interval(&other, &values), Some(interval));
    let turned: Vec<f64> = values.iter().map(|value| -value).collect();
    let negated = Interval { low: -interval.high, high: -interval.low };
    assert_eq!(resampling.interval(&one, &turned), Some(negated));
    let reversed: Vec<f64> = values.iter().rev().copied().collect();
    let tasks = Groups::tasks(40);
    assert_eq!(resampling.interval(&tasks, &values), resampling.interval(&tasks, &reversed));
    let test = flips.test(&tasks, &values);
    assert!(!test.exact && test.p > 0.0);
    assert_eq!([flips.test(&tasks, &reversed), flips.test(&tasks, &turned)], [test; 2]);
}

#[test]
fn groups_are_ordered_by_value() {
    let one = Groups::new([Some("b"), Some("a"), Some("b")]);
    let other = Groups::new([Some("a"), Some("b"), Some("b")]);
    assert_ne!(one, other);
    let totals = one.totals([Some(1.0), Some(2.0), None].into_iter());
    assert_eq!((totals.sums, totals.counts, totals.empty), (vec![1.0, 2.0], vec![1.0, 1.0], 0));
    let totals = one.totals([None, Some(2.0), None].into_iter());
    assert_eq!((totals.sums, totals.counts, totals.empty), (vec![0.0, 2.0], vec![0.0, 1.0], 1));
    assert!(Groups::new([]).is_empty());
}
