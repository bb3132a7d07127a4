//! For tests of samplers: chains with few states, whose distribution is known exactly.
//!
//! A chain is a transition matrix P, one row a state; π is the distribution that it should keep.

/// The average of transition matrices: one of them, chosen at random.
pub(crate) fn average(matrices: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
    let size = matrices[0].len();
    let entry =
        |i: usize, j: usize| matrices.iter().map(|m| m[i][j]).sum::<f64>() / matrices.len() as f64;
    (0..size).map(|i| (0..size).map(|j| entry(i, j)).collect()).collect()
}

pub(crate) fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let column = |row: &[f64], j: usize| row.iter().zip(b).map(|(x, b)| x * b[j]).sum();
    a.iter().map(|row| (0..b.len()).map(|j| column(row, j)).collect()).collect()
}

/// max |π P − π|.
pub(crate) fn drift(posterior: &[f64], matrix: &[Vec<f64>]) -> f64 {
    let moved = &product(&[posterior.to_vec()], matrix)[0];
    let changes = moved.iter().zip(posterior).map(|(a, b)| (a - b).abs());
    changes.fold(0.0, f64::max)
}

/// The asymptotic standard error of each state's frequency in a stationary chain of `steps` steps: the variance of
/// one step plus twice its covariances with all later ones, Σ_k (P − 1π)^k, summed by doubling.
pub(crate) fn standard_errors(posterior: &[f64], matrix: &[Vec<f64>], steps: usize) -> Vec<f64> {
    let mut power: Vec<Vec<f64>> = matrix
        .iter()
        .map(|row| row.iter().zip(posterior).map(|(p, pi)| p - pi).collect())
        .collect();
    let mut sum = power.clone();
    for _ in 0..14 {
        let later = product(&power, &sum);
        for (row, later) in sum.iter_mut().zip(later) {
            for (entry, later) in row.iter_mut().zip(later) {
                *entry += later;
            }
        }
        power = product(&power, &power);
    }
    let left = power.iter().flatten().fold(0.0, |a: f64, b| a.max(b.abs()));
    assert!(left < 1e-9, "the chain forgets too slowly: {left}");
    let variance = |(place, pi): (usize, &f64)| pi * (1.0 - pi) + 2.0 * pi * sum[place][place];
    let variances = posterior.iter().enumerate().map(variance);
    variances.map(|v| (v / steps as f64).sqrt()).collect()
}

/// How many standard errors each frequency is off.
pub(crate) fn deviations(counts: &[usize], posterior: &[f64], errors: &[f64]) -> Vec<f64> {
    let steps = counts.iter().sum::<usize>() as f64;
    let off = |((&count, pi), error): ((&usize, &f64), &f64)| (count as f64 / steps - pi) / error;
    counts.iter().zip(posterior).zip(errors).map(off).collect()
}

pub(crate) fn largest(deviations: &[f64]) -> f64 {
    deviations.iter().fold(0.0, |a, b| a.max(b.abs()))
}

/// Every state within 5 standard errors, and the mean square, which has expectation 1, below 2.5 if there are states enough for
/// that to mean something.
pub(crate) fn assert_agrees(deviations: &[f64]) {
    let worst = largest(deviations);
    assert!(worst < 5.0, "{worst} standard errors off: {deviations:.1?}");
    let square = deviations.iter().map(|z| z * z).sum::<f64>() / deviations.len() as f64;
    assert!(square < 2.5 || deviations.len() < 7, "mean square {square}: {deviations:.1?}");
}

/// A draw from a distribution over 0, 1, ….
pub(crate) fn draw(distribution: &[f64], rng: &mut crate::stream::Generator) -> usize {
    let mut left: f64 = rand::RngExt::random(rng);
    let place = distribution.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    place.unwrap_or(distribution.len() - 1)
}

/// Pearson's statistic of independent draws, in standard deviations from what it should be.
pub(crate) fn pearson(counts: &[usize], distribution: &[f64]) -> f64 {
    let draws = counts.iter().sum::<usize>() as f64;
    let term =
        |(&count, share): (&usize, &f64)| (count as f64 - share * draws).powi(2) / (share * draws);
    let freedom = (distribution.len() - 1) as f64;
    let sum: f64 = counts.iter().zip(distribution).map(term).sum();
    (sum - freedom) / (2.0 * freedom).sqrt()
}
