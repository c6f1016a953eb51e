//! The mutex and the condition variable of the C library (pthread_cond_wait(3)).

use model::case::Kind;

use crate::ring::link::{CallError, Carrier, Link, LinkError, Place, Receive, Send};
use crate::sys::{Shared, TokenCondvar};

/// The token lies in shared memory under a mutex, and a condition says that it is there.
pub struct Condvar;

impl Carrier for Condvar {
    const NAME: &'static str = "condvar";
    const SUMMARY: &'static str = "a pthread mutex and condition variable in shared memory";
    const NEEDS: &'static str = "process-shared mutexes of the C library (futex(2))";
}

/// Either end.
#[derive(Clone)]
pub struct End(Shared<TokenCondvar>);

impl Link for Condvar {
    type Sender = End;
    type Receiver = End;

    fn channel(place: &Place) -> Result<(End, End), CallError> {
        let end = TokenCondvar::new(place.kind == Kind::Process)
            .map(End)
            .map_err(|(call, errno)| CallError { call, errno })?;
        Ok((end.clone(), end))
    }
}

impl Send for End {
    #[inline(always)]
    fn send(&mut self, token: u8) -> Result<(), LinkError> {
        Ok(self.0.put(token)?)
    }
}

impl Receive for End {
    const INTERRUPTIBLE: bool = false;

    #[inline(always)]
    fn receive(&mut self) -> Result<u8, LinkError> {
        Ok(self.0.take()?)
    }
}
