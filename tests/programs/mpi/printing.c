/* Prints to standard output, or reads standard input, by the functions that name no stream:
 * printing HOW LINES. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char line[] = "line of text\n";

static void print_characters(void) {
  for (const char *at = line; *at != '\0'; at++)
    putchar(*at);
}

/* In turns by two descriptors of one file. */
static void write_to_both(int number) {
  if (write(1 + number % 2, line, strlen(line)) < 0)
    abort();
}

int main(int count, char **words) {
  if (count != 3)
    return 2;
  const char *how = words[1];
  int lines = atoi(words[2]);
  char word[64];
  for (int i = 0; i < lines; i++) {
    if (strcmp(how, "printf") == 0)
      printf("%s", line);
    else if (strcmp(how, "puts") == 0)
      puts("line of text");
    else if (strcmp(how, "putchar") == 0)
      print_characters();
    else if (strcmp(how, "both") == 0)
      write_to_both(i);
  }
  while (strcmp(how, "scanf") == 0 && scanf("%63[^\n]%*c", word) == 1)
    ;
  while (strcmp(how, "getchar") == 0 && getchar() != EOF)
    ;
  return 0;
}
