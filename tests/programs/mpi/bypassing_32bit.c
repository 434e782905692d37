/* Writes 5 MiB of zeros to the file "b". Without libc and its headers, which a 64-bit system need
 * not have for 32 bits: gcc -m32 -nostdlib -static -ffreestanding. */
enum { EXIT = 1, WRITE = 4, OPEN = 5, WRITE_ONLY_AND_CREATE = 0101, MIB = 1 << 20 };

static char zeros[MIB];

static int call(int number, int first, int second, int third) {
  int result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(first), "c"(second), "d"(third)
                   : "memory");
  return result;
}

void _start(void);
void _start(void) {
  int file = call(OPEN, (int)"b", WRITE_ONLY_AND_CREATE, 0666);
  int done = 0;
  for (int i = 0; i < 5; i++)
    done += call(WRITE, file, (int)zeros, MIB) == MIB;
  call(EXIT, done != 5, 0, 0);
  for (;;)
    ;
}
