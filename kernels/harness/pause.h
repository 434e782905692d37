/* Simulated work. */
#ifndef HARNESS_PAUSE_H
#define HARNESS_PAUSE_H

/* Sleeps until MPI_Wtime has reached `end`; not at all if it has. */
void pause_until(double end);

#endif
