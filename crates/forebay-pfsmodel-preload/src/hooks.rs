//! The hooks. Each adds one line of logic to the call of the next function with the same name.

mod data;
mod metadata;
mod numbers;
mod opening;
mod streams;

/// Defines functions that replace libc's.
///
/// `[name, alias, ...] { (arguments) -> result; before(ticket) expression; after(outcome)
/// expression }`: `ticket` is the value of the first expression, and the second may use it. Both
/// are optional. `charge expression` is for calls that transfer data.
macro_rules! hooks {
    ($([$($name:ident),+ $(,)?] $rest:tt)*) => { $($($crate::hooks::hook! { $name $rest })+)* };
}

/// One function of [`hooks!`].
macro_rules! hook {
    ($name:ident { $arguments:tt -> $result:ty; charge $charge:expr; }) => {
        $crate::hooks::hook! { @ $name $arguments $result; emulated $charge; _moved $crate::delay::end_call(emulated) }
    };
    ($name:ident { $arguments:tt -> $result:ty; before $before:expr; }) => {
        $crate::hooks::hook! { @ $name $arguments $result; _ticket $before; _outcome () }
    };
    ($name:ident { $arguments:tt -> $result:ty; after($outcome:ident) $after:expr; }) => {
        $crate::hooks::hook! { @ $name $arguments $result; _ticket (); $outcome $after }
    };
    ($name:ident { $arguments:tt -> $result:ty; before($ticket:ident) $before:expr; after($outcome:ident) $after:expr; }) => {
        $crate::hooks::hook! { @ $name $arguments $result; $ticket $before; $outcome $after }
    };
    (@ $name:ident ($($argument:ident: $type:ty),* $(,)?) $result:ty; $ticket:ident $before:expr; $outcome:ident $after:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            static NEXT: $crate::next::Next = $crate::next::Next::named(concat!(stringify!($name), "\0"));
            let $ticket = $before;
            let address = NEXT.address();
            let $outcome = if address.is_null() {
                $crate::errno::set(libc::ENOSYS);
                <$result as $crate::next::Failure>::FAILED
            } else {
                // SAFETY: the symbol of this name has this C signature (manual pages, sections 2 and 3).
                let next = unsafe {
                    std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($type),*) -> $result>(address)
                };
                // SAFETY: the program's arguments are passed on unchanged.
                unsafe { next($($argument),*) }
            };
            $after;
            $outcome
        }
    };
}

pub(crate) use hook;
pub(crate) use hooks;
