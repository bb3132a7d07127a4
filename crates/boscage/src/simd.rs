//! The vectorised inner loops: powers of two over arrays, and sums whose order is fixed.
//!
//! Not in the paper; this is where its RBF kernel meets the machine. Every kernel factor is computed as 2^(−q), with
//! coordinates scaled beforehand so that q = (u_a − u_b)² is the whole exponent. The instruction set (AVX-512, AVX2,
//! plain) is chosen at run time by `pulp`. All arithmetic is plain IEEE with fused multiply-adds in a fixed order, so the
//! bits do not depend on the machine or the number of threads.
//!
//! The chosen instructions reach only what is inlined into the function that was chosen. A closure that is called in two places
//! is not: it would be compiled for the plainest machine, where each fused multiply-add is a call. What a sum does to `LANES` numbers
//! is therefore a function that is always inlined.
//!
//! Notation: u, v are scaled coordinates; the suffix `at` marks the one point that a column belongs to.
//!
//! Cost: about 0.5 ns an element with AVX-512, 1 ns with AVX2.

use pulp::{Arch, Simd, WithSimd};

/// Number of partial sums kept by every reduction. Fixed, so that a sum has one value on every machine.
const LANES: usize = 8;

/// 2^(−q) for q ≥ 0, with a relative error below 4e-14; never below 2^(−1022).
///
/// That is less than what a sum over a hundred components loses by rounding, and one multiplication cheaper than the last
/// digit would be.
#[inline(always)]
pub(crate) fn exp2_neg(q: f64) -> f64 {
    // Adding and subtracting 1.5·2^52 rounds to the nearest integer, and leaves that integer in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // Polynomial of 2^r on |r| ≤ 1/2, highest power first, exact at 0; relative error 3.7e-14.
    const C: [f64; 10] = [
        1.020_312_206_596_085_8e-7,
        1.325_522_647_037_859_8e-6,
        1.525_268_684_250_813e-5,
        1.540_345_584_648_503_4e-4,
        1.333_355_817_904_702_8e-3,
        9.618_129_159_408_776e-3,
        5.550_410_866_476_042e-2,
        2.402_265_069_581_297_2e-1,
        std::f64::consts::LN_2,
        1.0,
    ];
    let q = q.min(1022.0);
    let shifted = ROUND - q;
    let r = (ROUND - shifted) - q;
    let mut p = C[0];
    let mut i = 1;
    while i < C.len() {
        p = p.mul_add(r, C[i]);
        i += 1;
    }
    // Adds the integer part to the exponent field.
    f64::from_bits((shifted.to_bits() << 52).wrapping_add(p.to_bits()))
}

/// The last numbers of a column, fewer than `LANES`, filled up with zeros, which add nothing to any sum here.
#[inline(always)]
fn padded(tail: &[f64]) -> [f64; LANES] {
    let mut lanes = [0.0; LANES];
    for (lane, value) in lanes.iter_mut().zip(tail) {
        *lane = *value;
    }
    lanes
}

/// Σ over lanes, in order.
#[inline(always)]
fn fold(lanes: [f64; LANES]) -> f64 {
    let mut sum = 0.0;
    for value in lanes {
        sum += value;
    }
    sum
}

/// out[a] = 2^(−(u[a] − at)²).
pub(crate) fn rbf_factor(u: &[f64], at: f64, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], f64, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, at, out) = self;
            for (out, &u) in out.iter_mut().zip(u) {
                let d = u - at;
                *out = exp2_neg(d * d);
            }
        }
    }
    Arch::new().dispatch(Op(u, at, out));
}

/// out[a] += weight · 2^(−(u[a] − at)²).
pub(crate) fn add_rbf_single(u: &[f64], at: f64, weight: f64, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], f64, f64, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, at, weight, out) = self;
            for (out, &u) in out.iter_mut().zip(u) {
                let d = u - at;
                *out = weight.mul_add(exp2_neg(d * d), *out);
            }
        }
    }
    Arch::new().dispatch(Op(u, at, weight, out));
}

/// out[a] += weight · 2^(−(u[a] − u_at)² − (v[a] − v_at)²).
pub(crate) fn add_rbf_pair(
    (u, u_at): (&[f64], f64),
    (v, v_at): (&[f64], f64),
    weight: f64,
    out: &mut [f64],
) {
    struct Op<'a>(&'a [f64], f64, &'a [f64], f64, f64, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, u_at, v, v_at, weight, out) = self;
            for ((out, &u), &v) in out.iter_mut().zip(u).zip(v) {
                let (d, e) = (u - u_at, v - v_at);
                *out = weight.mul_add(exp2_neg(d.mul_add(d, e * e)), *out);
            }
        }
    }
    Arch::new().dispatch(Op(u, u_at, v, v_at, weight, out));
}

/// out[a] += (u[a] − at)².
pub(crate) fn add_squares(u: &[f64], at: f64, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], f64, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, at, out) = self;
            for (out, &u) in out.iter_mut().zip(u) {
                let d = u - at;
                *out = d.mul_add(d, *out);
            }
        }
    }
    Arch::new().dispatch(Op(u, at, out));
}

/// out[a] += weight · 2^(−q[a]).
pub(crate) fn add_exp2_neg(q: &[f64], weight: f64, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], f64, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(q, weight, out) = self;
            for (out, &q) in out.iter_mut().zip(q) {
                *out = weight.mul_add(exp2_neg(q), *out);
            }
        }
    }
    Arch::new().dispatch(Op(q, weight, out));
}

/// (Σ w e, Σ w e q) with q = (u − at)² and e = 2^(−q): what a one-variable component adds to the gradient of ρ.
pub(crate) fn rbf_single_sums(u: &[f64], at: f64, w: &[f64]) -> [f64; 2] {
    struct Op<'a>(&'a [f64], f64, &'a [f64]);
    impl WithSimd for Op<'_> {
        type Output = [f64; 2];
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> [f64; 2] {
            let Self(u, at, w) = self;
            #[inline(always)]
            fn step(sums: &mut [[f64; LANES]; 2], at: f64, u: &[f64; LANES], w: &[f64; LANES]) {
                let [s, sq] = sums;
                for ((s, sq), (&u, &w)) in s.iter_mut().zip(sq).zip(u.iter().zip(w)) {
                    let d = u - at;
                    let q = d * d;
                    let t = w * exp2_neg(q);
                    *s += t;
                    *sq = t.mul_add(q, *sq);
                }
            }
            let mut sums = [[0.0; LANES]; 2];
            let (chunks, tail) = u.as_chunks::<LANES>();
            let (w_chunks, w_tail) = w.as_chunks::<LANES>();
            for (u, w) in chunks.iter().zip(w_chunks) {
                step(&mut sums, at, u, w);
            }
            step(&mut sums, at, &padded(tail), &padded(w_tail));
            sums.map(fold)
        }
    }
    Arch::new().dispatch(Op(u, at, w))
}

/// (Σ w e, Σ w e q_u, Σ w e q_v) for a two-variable component, as in [`rbf_single_sums`].
pub(crate) fn rbf_pair_sums(
    (u, u_at): (&[f64], f64),
    (v, v_at): (&[f64], f64),
    w: &[f64],
) -> [f64; 3] {
    struct Op<'a>(&'a [f64], f64, &'a [f64], f64, &'a [f64]);
    impl WithSimd for Op<'_> {
        type Output = [f64; 3];
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> [f64; 3] {
            let Self(u, u_at, v, v_at, w) = self;
            #[inline(always)]
            fn step(
                sums: &mut [[f64; LANES]; 3],
                (u, u_at): (&[f64; LANES], f64),
                (v, v_at): (&[f64; LANES], f64),
                w: &[f64; LANES],
            ) {
                let [s, su, sv] = sums;
                let sums = s.iter_mut().zip(su).zip(sv);
                for (((s, su), sv), ((&u, &v), &w)) in sums.zip(u.iter().zip(v).zip(w)) {
                    let (d, e) = (u - u_at, v - v_at);
                    let (qu, qv) = (d * d, e * e);
                    let t = w * exp2_neg(qu + qv);
                    *s += t;
                    *su = t.mul_add(qu, *su);
                    *sv = t.mul_add(qv, *sv);
                }
            }
            let mut sums = [[0.0; LANES]; 3];
            let (u_chunks, u_tail) = u.as_chunks::<LANES>();
            let (v_chunks, v_tail) = v.as_chunks::<LANES>();
            let (w_chunks, w_tail) = w.as_chunks::<LANES>();
            for ((u, v), w) in u_chunks.iter().zip(v_chunks).zip(w_chunks) {
                step(&mut sums, (u, u_at), (v, v_at), w);
            }
            let (u, v, w) = (padded(u_tail), padded(v_tail), padded(w_tail));
            step(&mut sums, (&u, u_at), (&v, v_at), &w);
            sums.map(fold)
        }
    }
    Arch::new().dispatch(Op(u, u_at, v, v_at, w))
}

/// Σ a·b, in a fixed order.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    struct Op<'a>(&'a [f64], &'a [f64]);
    impl WithSimd for Op<'_> {
        type Output = f64;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> f64 {
            let Self(a, b) = self;
            #[inline(always)]
            fn step(sum: &mut [f64; LANES], a: &[f64; LANES], b: &[f64; LANES]) {
                for (sum, (&a, &b)) in sum.iter_mut().zip(a.iter().zip(b)) {
                    *sum = a.mul_add(b, *sum);
                }
            }
            let mut sum = [0.0; LANES];
            let (a_chunks, a_tail) = a.as_chunks::<LANES>();
            let (b_chunks, b_tail) = b.as_chunks::<LANES>();
            for (a, b) in a_chunks.iter().zip(b_chunks) {
                step(&mut sum, a, b);
            }
            step(&mut sum, &padded(a_tail), &padded(b_tail));
            fold(sum)
        }
    }
    Arch::new().dispatch(Op(a, b))
}

/// out[a] = weight · u[a] · v[a].
pub(crate) fn scaled_product(weight: f64, u: &[f64], v: &[f64], out: &mut [f64]) {
    struct Op<'a>(f64, &'a [f64], &'a [f64], &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(weight, u, v, out) = self;
            for ((out, &u), &v) in out.iter_mut().zip(u).zip(v) {
                *out = weight * u * v;
            }
        }
    }
    Arch::new().dispatch(Op(weight, u, v, out));
}

/// out[a] = 2 ln 2 · q · 2^(−q) with q = (u[a] − at)²: the derivative of [`rbf_factor`] by the log of the lengthscale.
pub(crate) fn rbf_slope(u: &[f64], at: f64, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], f64, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, at, out) = self;
            for (out, &u) in out.iter_mut().zip(u) {
                let d = u - at;
                let q = d * d;
                *out = 2.0 * std::f64::consts::LN_2 * q * exp2_neg(q);
            }
        }
    }
    Arch::new().dispatch(Op(u, at, out));
}

/// out[a] = (1 + s + s²/3) exp(−s) with s = |u[a] − at|.
pub(crate) fn matern52_factor(u: &[f64], at: f64, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], f64, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, at, out) = self;
            for (out, &u) in out.iter_mut().zip(u) {
                let s = (u - at).abs();
                let polynomial = s.mul_add(s.mul_add(1.0 / 3.0, 1.0), 1.0);
                *out = polynomial * exp2_neg(s * std::f64::consts::LOG2_E);
            }
        }
    }
    Arch::new().dispatch(Op(u, at, out));
}

/// out[a] = s² (1 + s) / 3 · exp(−s): the derivative of [`matern52_factor`] by the log of the lengthscale.
pub(crate) fn matern52_slope(u: &[f64], at: f64, out: &mut [f64]) {
    struct Op<'a>(&'a [f64], f64, &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, at, out) = self;
            for (out, &u) in out.iter_mut().zip(u) {
                let s = (u - at).abs();
                *out = s * s * (1.0 + s) / 3.0 * exp2_neg(s * std::f64::consts::LOG2_E);
            }
        }
    }
    Arch::new().dispatch(Op(u, at, out));
}

/// [`matern52_factor`], and slope[a] = rate (u[a] − at) (1 + s) exp(−s) with s = |u[a] − at|, which is, up to the rate, its
/// derivative by `at`, from one exponential.
pub(crate) fn matern52_factor_and_point_slope(
    u: &[f64],
    at: f64,
    rate: f64,
    factor: &mut [f64],
    slope: &mut [f64],
) {
    struct Op<'a>(&'a [f64], f64, f64, &'a mut [f64], &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, at, rate, factor, slope) = self;
            for ((factor, slope), &u) in factor.iter_mut().zip(slope).zip(u) {
                let d = u - at;
                let s = d.abs();
                let power = exp2_neg(s * std::f64::consts::LOG2_E);
                *factor = s.mul_add(s.mul_add(1.0 / 3.0, 1.0), 1.0) * power;
                *slope = rate * d * (1.0 + s) * power;
            }
        }
    }
    Arch::new().dispatch(Op(u, at, rate, factor, slope));
}

/// [`matern52_factor`] and [`matern52_slope`] from one exponential.
pub(crate) fn matern52_factor_and_slope(u: &[f64], at: f64, factor: &mut [f64], slope: &mut [f64]) {
    struct Op<'a>(&'a [f64], f64, &'a mut [f64], &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(u, at, factor, slope) = self;
            for ((factor, slope), &u) in factor.iter_mut().zip(slope).zip(u) {
                let s = (u - at).abs();
                let power = exp2_neg(s * std::f64::consts::LOG2_E);
                *factor = s.mul_add(s.mul_add(1.0 / 3.0, 1.0), 1.0) * power;
                *slope = s * s * (1.0 + s) / 3.0 * power;
            }
        }
    }
    Arch::new().dispatch(Op(u, at, factor, slope));
}

/// (Σ w e, Σ w s, Σ w s o, Σ w e o) with o = p − weight · e: what variable e with slopes s adds to the gradient of ρ where all
/// pairs interact.
pub(crate) fn all_pairs_sums(
    w: &[f64],
    (e, s): (&[f64], &[f64]),
    p: &[f64],
    weight: f64,
) -> [f64; 4] {
    struct Op<'a>(&'a [f64], &'a [f64], &'a [f64], &'a [f64], f64);
    impl WithSimd for Op<'_> {
        type Output = [f64; 4];
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> [f64; 4] {
            let Self(w, e, s, p, weight) = self;
            #[inline(always)]
            fn step(
                sums: &mut [[f64; LANES]; 4],
                w: &[f64; LANES],
                (e, s): (&[f64; LANES], &[f64; LANES]),
                p: &[f64; LANES],
                weight: f64,
            ) {
                let [of_e, of_s, of_so, of_eo] = sums;
                let sums = of_e.iter_mut().zip(of_s).zip(of_so.iter_mut().zip(of_eo));
                let rows = w.iter().zip(e).zip(s.iter().zip(p));
                for (((of_e, of_s), (of_so, of_eo)), ((&w, &e), (&s, &p))) in sums.zip(rows) {
                    let o = (-weight).mul_add(e, p);
                    let (we, ws) = (w * e, w * s);
                    *of_e += we;
                    *of_s += ws;
                    *of_so = ws.mul_add(o, *of_so);
                    *of_eo = we.mul_add(o, *of_eo);
                }
            }
            let mut sums = [[0.0; LANES]; 4];
            let (w_chunks, w_tail) = w.as_chunks::<LANES>();
            let (e_chunks, e_tail) = e.as_chunks::<LANES>();
            let (s_chunks, s_tail) = s.as_chunks::<LANES>();
            let (p_chunks, p_tail) = p.as_chunks::<LANES>();
            for ((w, e), (s, p)) in w_chunks.iter().zip(e_chunks).zip(s_chunks.iter().zip(p_chunks))
            {
                step(&mut sums, w, (e, s), p, weight);
            }
            let (e, s) = (padded(e_tail), padded(s_tail));
            step(&mut sums, &padded(w_tail), (&e, &s), &padded(p_tail), weight);
            sums.map(fold)
        }
    }
    Arch::new().dispatch(Op(w, e, s, p, weight))
}

/// (Σ v s o, Σ w s o) with o = scale + weight (p − weight · e): what a variable e alone and all its pairs do to sums with weights v
/// and w where its slopes are s.
pub(crate) fn all_pairs_slopes(
    (e, s): (&[f64], &[f64]),
    p: &[f64],
    (scale, weight): (f64, f64),
    (v, w): (&[f64], &[f64]),
) -> [f64; 2] {
    struct Op<'a>(&'a [f64], &'a [f64], &'a [f64], f64, f64, &'a [f64], &'a [f64]);
    impl WithSimd for Op<'_> {
        type Output = [f64; 2];
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> [f64; 2] {
            let Self(e, s, p, scale, weight, v, w) = self;
            #[inline(always)]
            fn step(
                sums: &mut [[f64; LANES]; 2],
                (e, s): (&[f64; LANES], &[f64; LANES]),
                p: &[f64; LANES],
                (scale, weight): (f64, f64),
                (v, w): (&[f64; LANES], &[f64; LANES]),
            ) {
                let [of_v, of_w] = sums;
                let rows = e.iter().zip(s).zip(p).zip(v.iter().zip(w));
                for ((of_v, of_w), (((&e, &s), &p), (&v, &w))) in
                    of_v.iter_mut().zip(of_w).zip(rows)
                {
                    let so = s * weight.mul_add((-weight).mul_add(e, p), scale);
                    *of_v = v.mul_add(so, *of_v);
                    *of_w = w.mul_add(so, *of_w);
                }
            }
            let mut sums = [[0.0; LANES]; 2];
            let (e_chunks, e_tail) = e.as_chunks::<LANES>();
            let (s_chunks, s_tail) = s.as_chunks::<LANES>();
            let (p_chunks, p_tail) = p.as_chunks::<LANES>();
            let (v_chunks, v_tail) = v.as_chunks::<LANES>();
            let (w_chunks, w_tail) = w.as_chunks::<LANES>();
            let rows = e_chunks.iter().zip(s_chunks).zip(p_chunks);
            for (((e, s), p), (v, w)) in rows.zip(v_chunks.iter().zip(w_chunks)) {
                step(&mut sums, (e, s), p, (scale, weight), (v, w));
            }
            let (e, s, p) = (padded(e_tail), padded(s_tail), padded(p_tail));
            let (v, w) = (padded(v_tail), padded(w_tail));
            step(&mut sums, (&e, &s), &p, (scale, weight), (&v, &w));
            sums.map(fold)
        }
    }
    Arch::new().dispatch(Op(e, s, p, scale, weight, v, w))
}

/// main[a] += scale · e[a], p[a] += weight · e[a], q[a] += weight² · e[a]².
pub(crate) fn add_all_pairs(
    e: &[f64],
    (scale, weight): (f64, f64),
    main: &mut [f64],
    p: &mut [f64],
    q: &mut [f64],
) {
    struct Op<'a>(&'a [f64], f64, f64, &'a mut [f64], &'a mut [f64], &'a mut [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(e, scale, weight, main, p, q) = self;
            let rows = e.iter().zip(main).zip(p.iter_mut().zip(q));
            for ((&e, main), (p, q)) in rows {
                let t = weight * e;
                *main = scale.mul_add(e, *main);
                *p += t;
                *q = t.mul_add(t, *q);
            }
        }
    }
    Arch::new().dispatch(Op(e, scale, weight, main, p, q));
}

/// out[a] *= by[a].
pub(crate) fn multiply(out: &mut [f64], by: &[f64]) {
    struct Op<'a>(&'a mut [f64], &'a [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(out, by) = self;
            for (out, &by) in out.iter_mut().zip(by) {
                *out *= by;
            }
        }
    }
    Arch::new().dispatch(Op(out, by));
}

/// out[a] += weight · x[a].
pub(crate) fn add_scaled(out: &mut [f64], weight: f64, x: &[f64]) {
    struct Op<'a>(&'a mut [f64], f64, &'a [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(out, weight, x) = self;
            for (out, &x) in out.iter_mut().zip(x) {
                *out = weight.mul_add(x, *out);
            }
        }
    }
    Arch::new().dispatch(Op(out, weight, x));
}

/// out[a] += weight · x[a]².
pub(crate) fn add_scaled_squares(out: &mut [f64], weight: f64, x: &[f64]) {
    struct Op<'a>(&'a mut [f64], f64, &'a [f64]);
    impl WithSimd for Op<'_> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            let Self(out, weight, x) = self;
            for (out, &x) in out.iter_mut().zip(x) {
                *out = (weight * x).mul_add(x, *out);
            }
        }
    }
    Arch::new().dispatch(Op(out, weight, x));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, step: f64) -> Vec<f64> {
        (0..n).map(|i| (i as f64 * step).fract() * 3.0 - 1.0).collect()
    }

    #[test]
    fn exp2_neg_is_accurate() {
        for i in 0..2_000_000 {
            let q = i as f64 * 5e-4;
            let (got, want) = (exp2_neg(q), (-q).exp2());
            assert!((got / want - 1.0).abs() < 4e-14, "2^-{q}: {got:e} against {want:e}");
        }
        assert_eq!(exp2_neg(0.0), 1.0);
        assert!(exp2_neg(1e300) < 1e-307);
        assert!(exp2_neg(f64::INFINITY) < 1e-307);
    }

    #[test]
    fn loops_equal_the_plain_formulas_for_every_length() {
        for n in 0..40 {
            let (u, v, w) = (numbers(n, 0.618), numbers(n, 0.377), numbers(n, 0.913));
            let (ua, va, weight) = (0.3, -0.2, 1.7);
            let e = |q: f64| (-q).exp2();
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-13, "{a} {b} (n = {n})");

            let mut out = w.clone();
            add_rbf_single(&u, ua, weight, &mut out);
            let mut pair = w.clone();
            add_rbf_pair((&u, ua), (&v, va), weight, &mut pair);
            let (mut squares, mut powers) = (vec![0.0; n], w.clone());
            add_squares(&u, ua, &mut squares);
            add_squares(&v, va, &mut squares);
            add_exp2_neg(&squares, weight, &mut powers);
            let mut factor = vec![0.0; n];
            rbf_factor(&u, ua, &mut factor);
            let mut product = vec![0.0; n];
            scaled_product(weight, &u, &v, &mut product);
            for a in 0..n {
                let (qu, qv) = ((u[a] - ua).powi(2), (v[a] - va).powi(2));
                close(factor[a], e(qu));
                close(out[a], w[a] + weight * e(qu));
                close(pair[a], w[a] + weight * e(qu + qv));
                close(squares[a], qu + qv);
                close(powers[a], w[a] + weight * e(qu + qv));
                close(product[a], weight * u[a] * v[a]);
            }
            let (mut rs, mut mf, mut ms) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            rbf_slope(&u, ua, &mut rs);
            matern52_factor(&u, ua, &mut mf);
            matern52_slope(&u, ua, &mut ms);
            let (mut point_factor, mut point_slope) = (vec![0.0; n], vec![0.0; n]);
            matern52_factor_and_point_slope(&u, ua, weight, &mut point_factor, &mut point_slope);
            assert_eq!(point_factor, mf);
            for a in 0..n {
                let s = (u[a] - ua).abs();
                close(point_slope[a], weight * (u[a] - ua) * (1.0 + s) * (-s).exp());
            }
            let (mut both, mut both_slopes) = (vec![0.0; n], vec![0.0; n]);
            matern52_factor_and_slope(&u, ua, &mut both, &mut both_slopes);
            assert_eq!((&both, &both_slopes), (&mf, &ms));
            let sums = all_pairs_sums(&w, (&mf, &ms), &v, weight);
            let others = |a: usize| v[a] - weight * mf[a];
            let sum = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>();
            close(sums[0], sum(&|a| w[a] * mf[a]));
            close(sums[1], sum(&|a| w[a] * ms[a]));
            close(sums[2], sum(&|a| w[a] * ms[a] * others(a)));
            close(sums[3], sum(&|a| w[a] * mf[a] * others(a)));
            let sums = all_pairs_slopes((&mf, &ms), &v, (0.4, weight), (&u, &w));
            let slope = |a: usize| ms[a] * (0.4 + weight * others(a));
            close(sums[0], sum(&|a| u[a] * slope(a)));
            close(sums[1], sum(&|a| w[a] * slope(a)));
            let [mut main, mut p, mut q, mut squared] = [(); 4].map(|()| w.clone());
            add_all_pairs(&u, (0.4, weight), &mut main, &mut p, &mut q);
            add_scaled_squares(&mut squared, weight, &u);
            for a in 0..n {
                close(main[a], w[a] + 0.4 * u[a]);
                close(p[a], w[a] + weight * u[a]);
                close(q[a], w[a] + (weight * u[a]).powi(2));
                close(squared[a], w[a] + weight * u[a] * u[a]);
            }
            let (mut multiplied, mut added) = (u.clone(), u.clone());
            multiply(&mut multiplied, &v);
            add_scaled(&mut added, weight, &v);
            for a in 0..n {
                let s = (u[a] - ua).abs();
                close(rs[a], 2.0 * 2.0_f64.ln() * s * s * e(s * s));
                close(mf[a], (1.0 + s + s * s / 3.0) * (-s).exp());
                close(ms[a], s * s * (1.0 + s) / 3.0 * (-s).exp());
                close(multiplied[a], u[a] * v[a]);
                close(added[a], u[a] + weight * v[a]);
            }
            let single = rbf_single_sums(&u, ua, &w);
            let double = rbf_pair_sums((&u, ua), (&v, va), &w);
            let (mut s, mut d) = ([0.0; 2], [0.0; 3]);
            for a in 0..n {
                let (qu, qv) = ((u[a] - ua).powi(2), (v[a] - va).powi(2));
                s[0] += w[a] * e(qu);
                s[1] += w[a] * e(qu) * qu;
                d[0] += w[a] * e(qu + qv);
                d[1] += w[a] * e(qu + qv) * qu;
                d[2] += w[a] * e(qu + qv) * qv;
            }
            (0..2).for_each(|k| close(single[k], s[k]));
            (0..3).for_each(|k| close(double[k], d[k]));
            close(dot(&u, &v), u.iter().zip(&v).map(|(a, b)| a * b).sum());
        }
    }
}
