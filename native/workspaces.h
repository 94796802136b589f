/* Memory that plans share, one run at a time. */
#ifndef WORKSPACES_H
#define WORKSPACES_H

#include <stddef.h>

typedef struct Workspace Workspace;

/* Take a workspace, whose memory no other run has until it is given back; NULL without memory. */
Workspace *take_workspace(size_t bytes);
void give_back(Workspace *workspace);
/* Return its memory, which is aligned to 8 bytes. */
char *memory_of(Workspace *workspace);

#endif
