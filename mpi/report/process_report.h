#ifndef FOREBAY_MPI_PROCESS_REPORT_H
#define FOREBAY_MPI_PROCESS_REPORT_H

/* The process is about to end: writes its report if it is one without MPI and did enough. Nothing
 * is counted afterwards. */
void process_report_end(void);

#endif
