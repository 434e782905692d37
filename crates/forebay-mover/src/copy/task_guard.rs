//! Counts the workers with a task.

use crate::copy::context::CopyContext;

/// A task of a worker. Its drop updates the queue, also after a panic, so that other workers do not wait.
pub(crate) struct TaskGuard<'a, 'b> {
    run: &'a CopyContext<'b>,
    is_large: bool,
}

impl<'a, 'b> TaskGuard<'a, 'b> {
    pub(crate) fn new(run: &'a CopyContext<'b>, is_large: bool) -> Self {
        Self { run, is_large }
    }
}

impl Drop for TaskGuard<'_, '_> {
    fn drop(&mut self) {
        let mut queue = self.run.queue();
        queue.busy -= 1;
        queue.on_large -= usize::from(self.is_large);
        self.run.queued.notify_all();
    }
}
