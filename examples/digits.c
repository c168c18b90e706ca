/* Classify a handwritten digit, with a network that Python has trained
 *
 * In Python, with a model of rows of 784 numbers:
 *
 *     f = tw.function(lambda x: model(x, training=False))
 *     tw.export_library(f, [tw.TensorSpec([1, 784])], "digits.so")
 *
 * Then, in the same folder:
 *
 *     cc -O2 -I. digits.c ./digits.so -o digits
 *     ./digits < row.txt
 *
 * The program reads 784 numbers and prints the probability of each digit.
 */
#include <stdio.h>

#include "digits.h"

int main(void) {
  static float x[DIGITS_X_SIZE], y[DIGITS_Y_SIZE];
  for (int i = 0; i < DIGITS_X_SIZE; i++) {
    if (scanf("%f", &x[i]) != 1) {
      fprintf(stderr, "digits: expected %d numbers, got %d\n", DIGITS_X_SIZE, i);
      return 1;
    }
  }
  int code = digits_init(NULL);
  if (code == DIGITS_OK) code = digits_run(x, y, 1);
  if (code != DIGITS_OK) {
    fprintf(stderr, "digits: error %d, see digits.h\n", code);
    return 1;
  }
  for (int digit = 0; digit < DIGITS_Y_SIZE; digit++) printf("%d %.9g\n", digit, y[digit]);
  digits_free();
  return 0;
}
