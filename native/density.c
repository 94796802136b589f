/* Log-densities in files, which programs in any language open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"
#include "operators.h"
#include "runtime_api.h"
#include "tape.h"

/* A file has a mark, the checksum of all that follows it, and sections, each with its size and
 * padded to eight bytes: the operators of tapes, the names of the elements of a point and of the
 * variables, the initial point; then for the density and for the variables a tape, the places of
 * its outputs, and for each operand its type and shape, and its elements, none for the point. */
enum { MARK_BYTES = 8, HEAD_BYTES = 16, UNIT = 8, DENSITY = 0, VARIABLES = 1, MODELS = 2 };
static const char MARK[MARK_BYTES] = "PTDENS\0\1";

typedef struct {
  const char *at, *end;
} Cursor;

typedef struct {
  const char *bytes;
  uint64_t size;
} Section;

/* Names, each ended by a zero. */
typedef struct {
  const char **at;
  int64_t count;
} Names;

typedef struct Density {
  char *file;
  Section start;
  Names names[MODELS];
  Array *operands[MODELS];
  void *models[MODELS];
} Density;

static uint32_t checksum(const char *bytes, size_t size) {
  uint32_t sum = ~0u;
  for (size_t i = 0; i < size; i++) {
    sum ^= (unsigned char)bytes[i];
    for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (0xEDB88320u & -(sum & 1));
  }
  return ~sum;
}

/* Read the next section; whether the file has all of it. */
static int read_section(Cursor *cursor, Section *section) {
  if (cursor->end - cursor->at < UNIT) return 0;
  memcpy(&section->size, cursor->at, UNIT);
  cursor->at += UNIT;
  uint64_t left = (uint64_t)(cursor->end - cursor->at);
  uint64_t padding = -section->size % UNIT;
  if (section->size > left || padding > left - section->size) return 0;
  section->bytes = cursor->at;
  cursor->at += section->size + padding;
  return 1;
}

static int read_names(Cursor *cursor, Names *names) {
  Section section;
  if (!read_section(cursor, &section)) return 0;
  if (section.size && section.bytes[section.size - 1]) return 0;
  for (uint64_t i = 0; i < section.size; i++) names->count += !section.bytes[i];
  names->at = calloc((size_t)names->count + 1, sizeof *names->at);
  if (!names->at) return 0;
  const char *name = section.bytes;
  for (int64_t i = 0; i < names->count; i++, name += strlen(name) + 1) names->at[i] = name;
  return 1;
}

/* Whether the library has the operators of a file, by the same numbers. */
static int has_operators(const Names *names) {
  for (int64_t i = 0; i < names->count; i++) {
    if (i >= OPERATORS.count || strcmp(OPERATORS.all[i].name, names->at[i])) return 0;
  }
  return names->count == OPERATORS.count;
}

/* Read an operand of a tape; one without elements is the point. */
static int read_operand(Cursor *cursor, int64_t dim, int32_t *point_type, Array *operand) {
  Section head, elements;
  int64_t is_point, type, shape[MOST_AXES];
  if (!read_section(cursor, &head) || !read_section(cursor, &elements)) return 0;
  uint64_t rank = head.size / UNIT - 2;
  if (head.size % UNIT || head.size < 2 * UNIT || rank > MOST_AXES) return 0;
  memcpy(&is_point, head.bytes, UNIT);
  memcpy(&type, head.bytes + UNIT, UNIT);
  memcpy(shape, head.bytes + 2 * UNIT, rank * UNIT);
  *operand = (Array){.dtype = (int)type, .rank = (int)rank, .size = 1};
  for (uint64_t axis = 0; axis < rank; axis++) {
    if (shape[axis] < 0 || (shape[axis] && operand->size > INT64_MAX / 16 / shape[axis])) return 0;
    operand->size *= operand->shape[axis] = shape[axis];
  }
  if (is_point) {
    *point_type = (int32_t)type;
    return rank == 1 && operand->size == dim && (type == FLOAT64 || type == FLOAT32);
  }
  operand->data = (void *)elements.bytes;
  return (uint64_t)operand->size * bytes_of_element((int)type) == elements.size;
}

/* Read and open a model; NULL, or a message. */
static const char *read_model(Cursor *cursor, Density *density, int which) {
  static const char damaged[] = "the file is damaged";
  Section tape, places, count;
  int64_t operand_count, outputs;
  if (!read_section(cursor, &tape) || !read_section(cursor, &places)) return damaged;
  if (!read_section(cursor, &count) || count.size != UNIT || places.size % UNIT) return damaged;
  memcpy(&operand_count, count.bytes, UNIT);
  outputs = (int64_t)(places.size / UNIT);
  if (operand_count < 0 || operand_count > cursor->end - cursor->at) return damaged;
  for (int64_t i = 0, place; i < outputs; i++) {
    memcpy(&place, places.bytes + i * UNIT, UNIT);
    if (place < 0 || place >= outputs) return damaged;
  }
  Array *operands = density->operands[which] = calloc((size_t)operand_count + 1, sizeof *operands);
  if (!operands) return "out of memory";
  Settings settings = {.tape = tape.bytes, .tape_bytes = tape.size, .operands = operands};
  settings.places = (const int64_t *)(const void *)places.bytes;
  settings.output_count = outputs;
  settings.operand_count = operand_count;
  settings.size = density->names[DENSITY].count;
  settings.dtype = FLOAT64;
  for (int64_t i = 0; i < operand_count; i++) {
    if (!read_operand(cursor, settings.size, &settings.dtype, &operands[i])) return damaged;
  }
  density->models[which] = pytensor_onnx_open(&settings, NULL);
  return density->models[which] ? NULL : damaged;
}

static const char *read_density(Density *density, Cursor cursor) {
  Names operators = {0};
  uint64_t sum;
  if (cursor.end - cursor.at < HEAD_BYTES || memcmp(cursor.at, MARK, MARK_BYTES)) {
    return "the file is no density";
  }
  memcpy(&sum, cursor.at + MARK_BYTES, UNIT);
  cursor.at += HEAD_BYTES;
  if (sum != checksum(cursor.at, (size_t)(cursor.end - cursor.at))) return "the file is damaged";
  int is_read = read_names(&cursor, &operators);
  int is_of_library = is_read && has_operators(&operators);
  free(operators.at);
  if (is_read && !is_of_library) return "the file is of another version of the library";
  is_read = is_read && read_names(&cursor, &density->names[DENSITY]) &&
            read_names(&cursor, &density->names[VARIABLES]) &&
            read_section(&cursor, &density->start) &&
            density->start.size == (uint64_t)density->names[DENSITY].count * sizeof(double);
  if (!is_read) return "the file is damaged";
  const char *problem = NULL;
  for (int i = 0; !problem && i < MODELS; i++) problem = read_model(&cursor, density, i);
  return problem;
}

/* Read a file into memory, which is aligned for all types; its size, or -1. */
static int64_t read_file(const char *path, char **content) {
  FILE *file = fopen(path, "rb");
  if (!file) return -1;
  int64_t size = -1;
  if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0) {
    rewind(file);
    *content = malloc((size_t)size + 1);
    if (!*content || fread(*content, 1, (size_t)size, file) != (size_t)size) size = -1;
  }
  fclose(file);
  return size;
}

EXPORT void density_close(Density *density) {
  if (!density) return;
  for (int i = 0; i < MODELS; i++) {
    pytensor_onnx_close(density->models[i]);
    free(density->operands[i]);
    free(density->names[i].at);
  }
  free(density->file);
  free(density);
}

EXPORT const char *density_open(const char *path, Density **density) {
  *density = NULL;
  Density *opened = calloc(1, sizeof *opened);
  if (!opened) return "out of memory";
  int64_t size = read_file(path, &opened->file);
  const char *problem = size < 0 ? "the file cannot be read" : NULL;
  if (!problem) {
    problem = read_density(opened, (Cursor){opened->file, opened->file + size});
  }
  if (problem) return density_close(opened), problem;
  *density = opened;
  return NULL;
}

static const char *name_of(const Names *names, int64_t i) {
  return i >= 0 && i < names->count ? names->at[i] : NULL;
}

EXPORT int64_t density_dim(const Density *density) { return density->names[DENSITY].count; }

EXPORT int64_t density_variable_count(const Density *density) {
  return density->names[VARIABLES].count;
}

EXPORT const char *density_point_name(const Density *density, int64_t i) {
  return name_of(&density->names[DENSITY], i);
}

EXPORT const char *density_variable_name(const Density *density, int64_t i) {
  return name_of(&density->names[VARIABLES], i);
}

EXPORT void density_start(const Density *density, double *point) {
  memcpy(point, density->start.bytes, density->start.size);
}

EXPORT int density_log_density_gradient(Density *density, const double *point, double *log_density,
                                        double *gradient) {
  uint64_t size = (uint64_t)density_dim(density);
  return (int)pytensor_onnx_log_density(size, point, gradient, log_density, density->models);
}

EXPORT int density_variables(Density *density, const double *point, double *variables) {
  int64_t count = density_variable_count(density);
  return (int)write_outputs(density->models[VARIABLES], point, variables, count);
}

EXPORT void density_open_R(char **path, Density **density, char **message) {
  const char *problem = density_open(*path, density);
  *message = (char *)(problem ? problem : "");
}

EXPORT void density_close_R(Density **density) {
  density_close(*density);
  *density = NULL;
}

EXPORT void density_dim_R(Density **density, int *dim, int *variable_count) {
  *dim = (int)density_dim(*density);
  *variable_count = (int)density_variable_count(*density);
}

EXPORT void density_names_R(Density **density, char **point, char **variables) {
  const Names *names = (*density)->names;
  for (int64_t i = 0; i < names[DENSITY].count; i++) point[i] = (char *)names[DENSITY].at[i];
  for (int64_t i = 0; i < names[VARIABLES].count; i++) {
    variables[i] = (char *)names[VARIABLES].at[i];
  }
}

EXPORT void density_start_R(Density **density, double *point) { density_start(*density, point); }

EXPORT void density_log_density_gradient_R(Density **density, const double *point,
                                           double *log_density, double *gradient, int *reason) {
  *reason = density_log_density_gradient(*density, point, log_density, gradient);
}

EXPORT void density_variables_R(Density **density, const double *point, double *variables,
                                int *reason) {
  *reason = density_variables(*density, point, variables);
}
