//! Random search: every point uniform, nothing learned. The floor that every method must beat.
//!
//! Paper: "Random" in section "Experimental Results". Cost: nothing to speak of.

use crate::error::{Error, Result};
use crate::optimizer::Optimizer;
use crate::space::{Point, Space};
use crate::stream::{Purpose, Stream};

/// Uniform random points.
#[derive(Debug, Clone)]
pub struct RandomSearch {
    space: Space,
}

impl RandomSearch {
    /// Random search in this space.
    pub fn new(space: Space) -> Self {
        Self { space }
    }
}

impl Optimizer for RandomSearch {
    fn ask(&mut self, pending: &[Point], stream: &Stream) -> Result<Point> {
        for point in pending {
            self.space.check(point)?;
        }
        Ok(self.space.sample(&mut stream.generator(Purpose::Initial)))
    }

    fn tell(&mut self, point: Point, outcome: f64) -> Result<()> {
        self.space.check(&point)?;
        if outcome.is_finite() { Ok(()) } else { Err(Error::InvalidOutcome { value: outcome }) }
    }

    fn fail(&mut self, point: Point) -> Result<()> {
        self.space.check(&point)
    }
}
