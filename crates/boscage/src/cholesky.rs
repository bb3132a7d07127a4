//! Cholesky factors that can grow, and a product of matrices: the only file that knows the linear-algebra crate.
//!
//! The paper needs Δ⁻¹ with Δ = K + η²I (posterior) and log|Δ| (likelihood ρ). Both come from the lower factor L with
//! LLᵀ = Δ.
//!
//! Notation: matrices are lower triangles stored by column with a stride; n is the number of rows in use.
//!
//! Numerical trouble lives here and nowhere else: if Δ is not positive definite to working precision, a jitter is added
//! to its diagonal, from 1e-10 up to 1e-4 of the mean diagonal in steps of 100; after that the matrix is refused.
//!
//! Cost: factor n³/6, append and solve n²/2 a column, inverse n³/3 multiply-adds; memory n² numbers.
//! All routines use one thread: results do not depend on how many there are.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Accum, MatMut, MatRef, Par};

use crate::error::{Error, Result};
use crate::simd;

/// Jitters tried in turn, as multiples of the mean diagonal.
const JITTERS: [f64; 5] = [0.0, 1e-10, 1e-8, 1e-6, 1e-4];

/// A symmetric n × n matrix of which the lower triangle is stored, by column.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lower {
    n: usize,
    values: Vec<f64>,
}

impl Lower {
    pub(crate) fn zeros(n: usize) -> Self {
        Self { n, values: vec![0.0; n * n] }
    }

    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Column b from its diagonal element down: rows b..n.
    pub(crate) fn column(&self, b: usize) -> &[f64] {
        &self.values[b * self.n + b..(b + 1) * self.n]
    }

    /// Whole columns (upper parts included, which mean nothing), for blocked loops.
    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// The same, to write to.
    pub(crate) fn column_mut(&mut self, b: usize) -> &mut [f64] {
        &mut self.values[b * self.n + b..(b + 1) * self.n]
    }
}

/// Whether something is left of a pivot (what remains of a diagonal element after elimination). Below 1e-13 of the
/// element it is all rounding, even if it happens to be positive, and everything divided by it would be noise.
fn is_good(pivot: f64, diagonal: f64) -> bool {
    pivot.is_finite() && pivot > 1e-13 * diagonal
}

/// C += AᵀB, where the columns of A and B have n numbers each, one column after the other, and so has C.
pub(crate) fn add_transposed_product(n: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    if n == 0 || a.len() < n || b.len() < n {
        return;
    }
    let (rows, columns) = (a.len() / n, b.len() / n);
    let a = MatRef::from_column_major_slice(&a[..n * rows], n, rows);
    let b = MatRef::from_column_major_slice(&b[..n * columns], n, columns);
    let c = MatMut::from_column_major_slice_mut(&mut c[..rows * columns], rows, columns);
    matmul(c, Accum::Add, a.transpose(), b, 1.0, Par::Seq);
}

/// The lower Cholesky factor L of a matrix, with room to append rows.
#[derive(Debug, Clone)]
pub(crate) struct Factor {
    n: usize,
    stride: usize,
    values: Vec<f64>,
    jitter: f64,
}

impl Factor {
    /// Factors `matrix` + `diagonal`·I, with jitter if it must be.
    pub(crate) fn new(matrix: &Lower, diagonal: f64) -> Result<Self> {
        let n = matrix.n;
        // Room for a few dozen appended rows, so that most appends move nothing.
        let stride = n + 32;
        let mut factor = Self { n, stride, values: vec![0.0; stride * stride], jitter: 0.0 };
        factor.refactor(matrix, diagonal)?;
        Ok(factor)
    }

    /// As [`Factor::new`], reusing the memory of this factor.
    pub(crate) fn refactor(&mut self, matrix: &Lower, diagonal: f64) -> Result<()> {
        self.make_room(matrix.n);
        self.write_columns(0, &matrix.values);
        self.refactor_written(matrix, diagonal)
    }

    /// Makes room for an n × n matrix; the factor holds nothing of meaning until it is factored.
    pub(crate) fn make_room(&mut self, n: usize) {
        if self.stride < n {
            let stride = n + 32;
            *self = Self { n, stride, values: vec![0.0; stride * stride], jitter: 0.0 };
        }
        self.n = n;
    }

    /// Takes over whole columns of a matrix, of which the lower triangle counts.
    pub(crate) fn write_columns(&mut self, first: usize, columns: &[f64]) {
        for (offset, column) in columns.chunks_exact(self.n.max(1)).enumerate() {
            let b = first + offset;
            let start = b * self.stride;
            self.values[start + b..start + self.n].copy_from_slice(&column[b..]);
        }
    }

    /// Factors `matrix` + `diagonal`·I, all columns of which have been written already; it is needed again only if
    /// there must be jitter.
    pub(crate) fn refactor_written(&mut self, matrix: &Lower, diagonal: f64) -> Result<()> {
        let n = matrix.n;
        let diagonals: Vec<f64> = (0..n).map(|b| matrix.column(b)[0] + diagonal).collect();
        let mean = diagonals.iter().sum::<f64>() / n.max(1) as f64;
        let mut memory = MemBuffer::new(llt::factor::cholesky_in_place_scratch::<f64>(
            n,
            Par::Seq,
            Default::default(),
        ));
        let mut failed = 0;
        for jitter in JITTERS {
            if jitter > 0.0 {
                self.write_columns(0, &matrix.values);
            }
            self.jitter = jitter * mean;
            for (b, diagonal) in diagonals.iter().enumerate() {
                self.values[b * self.stride + b] = diagonal + self.jitter;
            }
            let factored = llt::factor::cholesky_in_place(
                MatMut::from_column_major_slice_with_stride_mut(
                    &mut self.values,
                    n,
                    n,
                    self.stride,
                ),
                Default::default(),
                Par::Seq,
                MemStack::new(&mut memory),
                Default::default(),
            );
            match factored {
                Err(llt::factor::LltError::NonPositivePivot { index }) => failed = index,
                Ok(_) => {
                    let lost = |&b: &usize| {
                        let pivot = self.values[b * self.stride + b];
                        !is_good(pivot * pivot, diagonals[b])
                    };
                    match (0..n).find(lost) {
                        Some(pivot) => failed = pivot,
                        None => return Ok(()),
                    }
                }
            }
        }
        Err(Error::NotPositiveDefinite { pivot: failed })
    }

    #[cfg(test)]
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// What was added to the diagonal beyond what was asked for.
    #[cfg(test)]
    pub(crate) fn jitter(&self) -> f64 {
        self.jitter
    }

    fn matrix(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice_with_stride(&self.values, self.n, self.n, self.stride)
    }

    /// Grows the factored matrix by one row: `row` against the present rows, `diagonal` on the diagonal.
    ///
    /// Fails, leaving the factor as it was, if the new pivot is lost in rounding; the caller then factors afresh, which
    /// brings in the jitter.
    pub(crate) fn append(&mut self, row: &[f64], diagonal: f64) -> Result<()> {
        let n = self.n;
        let mut z = row.to_vec();
        self.forward_solve(&mut z);
        let pivot = diagonal + self.jitter - simd::dot(&z, &z);
        if !is_good(pivot, diagonal) {
            return Err(Error::NotPositiveDefinite { pivot: n });
        }
        if n == self.stride {
            self.grow(n + n / 2 + 32);
        }
        for (b, z) in z.into_iter().enumerate() {
            self.values[b * self.stride + n] = z;
        }
        self.values[n * self.stride + n] = pivot.sqrt();
        self.n = n + 1;
        Ok(())
    }

    fn grow(&mut self, stride: usize) {
        let mut values = vec![0.0; stride * stride];
        for b in 0..self.n {
            let (from, to) = (b * self.stride, b * stride);
            values[to..to + self.n].copy_from_slice(&self.values[from..from + self.n]);
        }
        self.values = values;
        self.stride = stride;
    }

    /// v ← L⁻¹ v.
    pub(crate) fn forward_solve(&self, v: &mut [f64]) {
        self.forward_solve_columns(v, 1);
    }

    /// B ← L⁻¹ B for a block of columns, each of length n.
    pub(crate) fn forward_solve_columns(&self, block: &mut [f64], columns: usize) {
        if self.n > 0 && columns > 0 {
            let block = MatMut::from_column_major_slice_mut(block, self.n, columns);
            solve_lower_triangular_in_place(self.matrix(), block, Par::Seq);
        }
    }

    /// v ← L⁻ᵀ v.
    pub(crate) fn backward_solve(&self, v: &mut [f64]) {
        if self.n > 0 {
            let v = MatMut::from_column_major_slice_mut(v, self.n, 1);
            solve_upper_triangular_in_place(self.matrix().transpose(), v, Par::Seq);
        }
    }

    /// v ← (LLᵀ)⁻¹ v, and ‖L⁻¹v‖². One substitution after the other is faster for a single vector than solving by blocks.
    pub(crate) fn solve(&self, v: &mut [f64]) -> f64 {
        let column = |b: usize| &self.values[b * self.stride + b..b * self.stride + self.n];
        for b in 0..self.n.min(v.len()) {
            let (done, rest) = v.split_at_mut(b + 1);
            done[b] /= column(b)[0];
            simd::add_scaled(rest, -done[b], &column(b)[1..]);
        }
        let square = simd::dot(v, v);
        for b in (0..self.n.min(v.len())).rev() {
            let (rest, known) = v.split_at_mut(b + 1);
            rest[b] = (rest[b] - simd::dot(&column(b)[1..], known)) / column(b)[0];
        }
        square
    }

    /// Lv.
    pub(crate) fn lower_times(&self, v: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.n];
        for (b, &v) in v.iter().enumerate().take(self.n) {
            let column = &self.values[b * self.stride + b..b * self.stride + self.n];
            simd::add_scaled(&mut product[b..], v, column);
        }
        product
    }

    /// log|LLᵀ|, summed in order.
    pub(crate) fn log_determinant(&self) -> f64 {
        let mut sum = 0.0;
        for b in 0..self.n {
            sum += self.values[b * self.stride + b].ln();
        }
        2.0 * sum
    }

    /// (LLᵀ)⁻¹.
    pub(crate) fn inverse(&self) -> Lower {
        let n = self.n;
        let mut out = Lower::zeros(n);
        if n > 0 {
            let mut memory = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(n, Par::Seq));
            llt::inverse::inverse(
                MatMut::from_column_major_slice_mut(&mut out.values, n, n),
                self.matrix(),
                Par::Seq,
                MemStack::new(&mut memory),
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A positive definite matrix with entries of a smooth kernel.
    fn kernel_matrix(n: usize, noise: f64) -> Lower {
        let x: Vec<f64> = (0..n).map(|i| (i as f64 * 0.618_034).fract()).collect();
        let mut matrix = Lower::zeros(n);
        for b in 0..n {
            for (a, value) in (b..n).zip(matrix.column_mut(b)) {
                *value = (-(x[a] - x[b]).powi(2) * 20.0).exp();
            }
            matrix.column_mut(b)[0] += noise;
        }
        matrix
    }

    fn entry(matrix: &Lower, a: usize, b: usize) -> f64 {
        let (a, b) = (a.max(b), a.min(b));
        matrix.column(b)[a - b]
    }

    fn l(factor: &Factor, a: usize, b: usize) -> f64 {
        if a < b { 0.0 } else { factor.values[b * factor.stride + a] }
    }

    #[test]
    fn factor_times_its_transpose_is_the_matrix() {
        for n in [1, 2, 7, 33, 100] {
            let matrix = kernel_matrix(n, 0.0);
            let factor = Factor::new(&matrix, 0.01).unwrap();
            assert_eq!(factor.jitter(), 0.0);
            for a in 0..n {
                for b in 0..=a {
                    let product: f64 = (0..n).map(|k| l(&factor, a, k) * l(&factor, b, k)).sum();
                    let want = entry(&matrix, a, b) + if a == b { 0.01 } else { 0.0 };
                    assert!((product - want).abs() < 1e-13);
                }
            }
        }
    }

    #[test]
    fn appended_factor_equals_fresh_factor() {
        let n = 120;
        let matrix = kernel_matrix(n, 0.01);
        let start = 3;
        let mut first = Lower::zeros(start);
        for b in 0..start {
            first.column_mut(b).copy_from_slice(&matrix.column(b)[..start - b]);
        }
        let mut grown = Factor::new(&first, 0.0).unwrap();
        for a in start..n {
            let row: Vec<f64> = (0..a).map(|b| entry(&matrix, a, b)).collect();
            grown.append(&row, entry(&matrix, a, a)).unwrap();
        }
        let fresh = Factor::new(&matrix, 0.0).unwrap();
        assert_eq!(grown.n(), n);
        for a in 0..n {
            for b in 0..=a {
                assert!((l(&grown, a, b) - l(&fresh, a, b)).abs() < 1e-11);
            }
        }
        assert!((grown.log_determinant() - fresh.log_determinant()).abs() < 1e-9);
    }

    #[test]
    fn solves_and_inverse_undo_the_matrix() {
        let n = 60;
        let matrix = kernel_matrix(n, 0.05);
        let factor = Factor::new(&matrix, 0.0).unwrap();
        let v: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let mut x = v.clone();
        factor.forward_solve(&mut x);
        factor.backward_solve(&mut x);
        let inverse = factor.inverse();
        for a in 0..n {
            let back: f64 = (0..n).map(|b| entry(&matrix, a, b) * x[b]).sum();
            assert!((back - v[a]).abs() < 1e-11);
            let by_inverse: f64 = (0..n).map(|b| entry(&inverse, a, b) * v[b]).sum();
            assert!((by_inverse - x[a]).abs() < 1e-9);
        }
        // A block of columns gives the same bits as each column alone.
        let mut block = [v.clone(), x.clone()].concat();
        factor.forward_solve_columns(&mut block, 2);
        for (column, one) in [v, x].into_iter().enumerate() {
            let mut alone = one;
            factor.forward_solve(&mut alone);
            for a in 0..n {
                assert!((block[column * n + a] - alone[a]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn products_are_added() {
        let numbers = |count: usize, step: f64| -> Vec<f64> {
            (0..count).map(|k| (k as f64 * step).sin()).collect()
        };
        for (n, rows, columns) in [(1, 1, 1), (7, 3, 5), (40, 12, 1), (33, 20, 20), (0, 2, 2)] {
            let (a, b) = (numbers(n * rows, 0.7), numbers(n * columns, 1.3));
            let before = numbers(rows * columns, 0.2);
            let mut c = before.clone();
            add_transposed_product(n, &a, &b, &mut c);
            for j in 0..columns {
                for i in 0..rows {
                    let sum: f64 = (0..n).map(|k| a[i * n + k] * b[j * n + k]).sum();
                    let want = before[j * rows + i] + sum;
                    assert!((c[j * rows + i] - want).abs() < 1e-12, "{n} {rows} {columns}");
                }
            }
        }
    }

    #[test]
    fn one_vector_is_solved_for_as_blocks_are() {
        let matrix = kernel_matrix(45, 0.05);
        for n in [0, 1, 7, 45] {
            // Grown row by row, beyond the room that there was.
            let mut factor = Factor::new(&Lower::zeros(0), 0.0).unwrap();
            for a in 0..n {
                let row: Vec<f64> = (0..a).map(|b| entry(&matrix, a, b)).collect();
                factor.append(&row, entry(&matrix, a, a)).unwrap();
            }
            let v: Vec<f64> = (0..n).map(|i| (i as f64).sin() + 0.3).collect();
            let mut want = v.clone();
            factor.forward_solve(&mut want);
            let square: f64 = want.iter().map(|x| x * x).sum();
            factor.backward_solve(&mut want);
            let mut got = v;
            assert!((factor.solve(&mut got) - square).abs() <= 1e-9 * square);
            for (got, want) in got.iter().zip(&want) {
                assert!((got - want).abs() < 1e-9, "{got} {want} (n = {n})");
            }
        }
    }

    #[test]
    fn log_determinant_of_a_diagonal() {
        let mut matrix = Lower::zeros(3);
        for b in 0..3 {
            matrix.column_mut(b)[0] = (b + 1) as f64;
        }
        let factor = Factor::new(&matrix, 0.0).unwrap();
        assert!((factor.log_determinant() - 6.0_f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn singular_matrices_get_the_smallest_jitter_that_works() {
        // Rank one: all ones.
        let n = 40;
        let mut matrix = Lower::zeros(n);
        (0..n).for_each(|b| matrix.column_mut(b).fill(1.0));
        let factor = Factor::new(&matrix, 0.0).unwrap();
        assert!(factor.jitter() > 0.0 && factor.jitter() <= 1e-8, "{}", factor.jitter());
    }

    #[test]
    fn pivots_that_are_all_rounding_are_not_taken_for_positive() {
        // Three rows of rank two. Whichever way the last pivot is rounded, it means nothing.
        for k in 1..200 {
            let (s, c) = (f64::from(k) * 0.37).sin_cos();
            let rows = [[1.0, 0.1], [s, c], [c, 1.0 + s]];
            let mut matrix = Lower::zeros(3);
            for b in 0..3 {
                for (a, value) in (b..3).zip(matrix.column_mut(b)) {
                    *value = rows[a][0] * rows[b][0] + rows[a][1] * rows[b][1];
                }
            }
            let factor = Factor::new(&matrix, 0.0).unwrap();
            assert!(factor.jitter() > 0.0, "k = {k}: last pivot {:e}", l(&factor, 2, 2).powi(2));
        }
    }

    #[test]
    fn hopeless_matrices_are_refused_with_the_pivot() {
        let mut indefinite = Lower::zeros(3);
        for (b, d) in [1.0, -5.0, 1.0].into_iter().enumerate() {
            indefinite.column_mut(b)[0] = d;
        }
        let refused = Factor::new(&indefinite, 0.0).unwrap_err();
        assert!(matches!(refused, Error::NotPositiveDefinite { pivot: 1 }), "{refused}");

        let mut with_nan = kernel_matrix(5, 0.1);
        with_nan.column_mut(2)[1] = f64::NAN;
        assert!(Factor::new(&with_nan, 0.0).is_err());
    }

    #[test]
    fn an_append_that_loses_its_pivot_leaves_the_factor_unchanged() {
        let matrix = kernel_matrix(10, 0.0);
        let mut factor = Factor::new(&matrix, 1e-6).unwrap();
        let before = factor.clone();
        let duplicate: Vec<f64> =
            (0..10).map(|b| entry(&matrix, 4, b) + if b == 4 { 1e-6 } else { 0.0 }).collect();
        assert!(factor.append(&duplicate, 1.0 + 1e-6).is_err());
        assert_eq!(factor.n(), 10);
        assert_eq!(factor.values, before.values);
    }

    #[test]
    fn empty_matrix() {
        let factor = Factor::new(&Lower::zeros(0), 0.1).unwrap();
        assert_eq!(factor.log_determinant(), 0.0);
        let mut grown = factor;
        grown.append(&[], 4.0).unwrap();
        assert!((grown.log_determinant() - 4.0_f64.ln()).abs() < 1e-15);
    }
}
