// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ready queue: the most urgent task first, tasks of the same urgency in the order of release.

use std::collections::VecDeque;

use crate::ranks::Ranks;

const URGENCIES: usize = 256;

/// A ready queue for fixed-priority scheduling. Each operation takes constant time.
#[derive(Debug)]
pub(crate) struct Ready {
    queues: Vec<VecDeque<u32>>,
    /// The urgencies that have ready tasks, as ranks: the highest urgency has rank 0.
    some: Ranks,
    /// The first task of the highest urgency.
    first: Option<u32>,
}

impl Ready {
    /// Makes an empty queue.
    pub fn new() -> Self {
        Self {
            queues: vec![VecDeque::new(); URGENCIES],
            some: Ranks::new(URGENCIES),
            first: None,
        }
    }

    fn find_first(&mut self) {
        self.first = self
            .some
            .first()
            .and_then(|rank| self.queues[URGENCIES - 1 - rank].front().copied());
    }

    fn rank(urgency: u8) -> usize {
        URGENCIES - 1 - usize::from(urgency)
    }

    /// Adds a task behind the tasks of the same urgency.
    pub fn push(&mut self, task: usize, urgency: u8) {
        self.queues[usize::from(urgency)].push_back(task as u32);
        self.some.insert(Self::rank(urgency));
        self.find_first();
    }

    /// Removes the first task of this urgency.
    pub fn pop(&mut self, urgency: u8) {
        let queue = &mut self.queues[usize::from(urgency)];
        queue.pop_front();
        if queue.is_empty() {
            self.some.remove(Self::rank(urgency));
        }
        self.find_first();
    }

    /// Removes a task from any position in the queue.
    pub fn remove(&mut self, task: usize, urgency: u8) {
        let queue = &mut self.queues[usize::from(urgency)];
        queue.retain(|&other| other as usize != task);
        if queue.is_empty() {
            self.some.remove(Self::rank(urgency));
        }
        self.find_first();
    }

    /// Moves the first task of this urgency behind the others of the same urgency.
    pub fn rotate(&mut self, urgency: u8) {
        self.queues[usize::from(urgency)].rotate_left(1);
        self.find_first();
    }

    /// Returns whether more than one ready task has this urgency.
    pub fn has_equals(&self, urgency: u8) -> bool {
        self.queues[usize::from(urgency)].len() > 1
    }

    /// Returns the first task of the highest urgency.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        self.first.map(|task| task as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_comes_first_and_equals_in_turn() {
        let mut ready = Ready::new();
        assert_eq!(ready.first(), None);
        ready.push(1, 10);
        ready.push(2, 10);
        assert_eq!(ready.first(), Some(1));
        assert!(ready.has_equals(10));
        ready.push(3, 200);
        assert_eq!(ready.first(), Some(3));
        assert!(!ready.has_equals(200));
        ready.pop(200);
        ready.rotate(10);
        assert_eq!(ready.first(), Some(2));
        ready.remove(1, 10);
        ready.pop(10);
        assert_eq!(ready.first(), None);
    }
}
