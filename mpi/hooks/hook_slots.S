/* What the program calls: for each hook NAME, listed by the Makefile in hooks.list, a jump through
 * its slot, first to own_NAME. All registers and the stack are left as they are.
 *
 * LARGE(NAME, SMALL) and LARGE_AT, with a file offset in front of the buffer: the same, and also
 * less_NAME, which jumps to SMALL if the count fits into an int, and else returns MPI_ERR_COUNT. */
#define MPI_ERR_COUNT_OF_BOTH_FAMILIES 2

#if defined(__x86_64__)
#define JUMP(NAME) jmp *slot_##NAME(%rip)
#define SET_INT(NAME) movl $1, NAME(%rip)
#define JUMP_IF_INT(NAME, REGISTER)                                                                \
  cmpq $0x7fffffff, %REGISTER; ja 9f; JUMP(NAME); 9: movl $MPI_ERR_COUNT_OF_BOTH_FAMILIES, %eax; ret
#define THIRD rdx
#define FOURTH rcx
#elif defined(__aarch64__)
#define JUMP(NAME) adrp x16, slot_##NAME; ldr x16, [x16, #:lo12:slot_##NAME]; br x16
#define SET_INT(NAME) adrp x16, NAME; mov w17, #1; str w17, [x16, #:lo12:NAME]
#define JUMP_IF_INT(NAME, REGISTER)                                                                \
  mov w17, #0x7fffffff; cmp REGISTER, x17; b.hi 9f; JUMP(NAME);                                    \
  9: mov w0, #MPI_ERR_COUNT_OF_BOTH_FAMILIES; ret
#define THIRD x2
#define FOURTH x3
#else
#error "a jump through a slot is to be written for this processor"
#endif

/* struct jump of hook_slots.c. */
#define SLOT(NAME, INSTEAD)                                                                        \
  .pushsection .rodata; 1: .asciz #NAME; .popsection;                                              \
  .pushsection forebay_jumps, "aw"; .balign 8; .quad 1b; slot_##NAME: .quad own_##NAME;            \
  .quad INSTEAD; .popsection;

#define FUNCTION(NAME, BODY)                                                                       \
  .type NAME, %function; .balign 16; NAME: BODY; .size NAME, . - NAME;

#define HOOK(NAME) SLOT(NAME, 0) .globl NAME; FUNCTION(NAME, JUMP(NAME))
#define LARGE_IN(NAME, SMALL, REGISTER)                                                            \
  SLOT(NAME, less_##NAME) .globl NAME; FUNCTION(NAME, JUMP(NAME))                                  \
  FUNCTION(less_##NAME, JUMP_IF_INT(SMALL, REGISTER))
#define LARGE(NAME, SMALL) LARGE_IN(NAME, SMALL, THIRD)
#define LARGE_AT(NAME, SMALL) LARGE_IN(NAME, SMALL, FOURTH)

  .text
#include "hooks.list"

/* vfork returns twice into the frame of its caller, so no function of C can stand before it. */
  .pushsection .data; .balign 8; .globl slot_vfork; .hidden slot_vfork
slot_vfork: .quad vfork_early
  .popsection
  .globl vfork
  FUNCTION(vfork, SET_INT(vfork_was_called); JUMP(vfork))

  .section .note.GNU-stack, "", %progbits
